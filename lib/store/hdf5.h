// Owners of HDF5 identifiers, for this room alone. HDF5 keeps global state: use it from one thread at a time.
#pragma once

#include "base/error.h"
#include "store/writer.h"

#include <hdf5.h>

namespace noether::store {

/// Call before the first use of HDF5 on a thread: it prints nothing by itself from then on, and never follows a link
/// into another file. Cheap when called again. The library is started here and not before, as most runs of most
/// programs need none of it.
void hdf5_start();

/// The innermost line of HDF5's own error stack: "bad heap free list".
std::string hdf5_reason();

/// Owns one HDF5 identifier; Close is the H5?close that fits its kind.
template <herr_t (*Close)(hid_t)> class Hid {
public:
  /// Throws Error "WHAT: REASON" when the call that made `id` failed.
  Hid(hid_t id, std::string_view what) : id_(id) {
    if (id < 0) throw Error("{}: {}", what, hdf5_reason());
  }
  Hid(Hid&& other) noexcept : id_(std::exchange(other.id_, H5I_INVALID_HID)) {}
  Hid& operator=(Hid&& other) noexcept {
    std::swap(id_, other.id_);
    return *this;
  }
  ~Hid() {
    if (id_ >= 0) Close(id_);
  }
  operator hid_t() const { return id_; }
  /// Closes now and throws where a destructor would be silent.
  void close(std::string_view what) {
    if (Close(std::exchange(id_, H5I_INVALID_HID)) < 0) throw Error("{}: {}", what, hdf5_reason());
  }

private:
  hid_t id_;
};
using H5File = Hid<H5Fclose>;
using Dataset = Hid<H5Dclose>;
using Attribute = Hid<H5Aclose>;
using Group = Hid<H5Gclose>;
using Space = Hid<H5Sclose>;
using DataType = Hid<H5Tclose>;
using Properties = Hid<H5Pclose>;

/// For calls that return a status: throws Error "WHAT: REASON" when it is negative.
void hdf5_check(herr_t status, std::string_view what);

/// HDF5's little-endian type, in files and (on the machines this runs on) in memory. Not to be closed.
hid_t hdf5_type(Type type);

/// A fixed-length UTF-8 string type that holds `length` bytes, padded with NULs (a type of no bytes does not exist).
DataType string_type(std::size_t length);

} // namespace noether::store
