// HDF5 made quiet, lazy and confined to the file at hand.
#include "store/hdf5.h"

#include <bit>

namespace noether::store {
static_assert(std::endian::native == std::endian::little, "arrays are little-endian in files and used where they lie");

void hdf5_start() {
  static const bool started = [] {
    if (H5open() < 0) throw Error("cannot start the HDF5 library");
    // With no class of external links registered, a crafted file cannot make a reader open other files.
    H5Lunregister(H5L_TYPE_EXTERNAL);
    return true;
  }();
  thread_local const bool quiet = H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr) >= 0;
  static_cast<void>(started && quiet);
}

std::string hdf5_reason() {
  std::string reason;
  H5Ewalk2(
      H5E_DEFAULT, H5E_WALK_UPWARD,
      [](unsigned, const H5E_error2_t* error, void* out) -> herr_t {
        auto& text = *static_cast<std::string*>(out);
        if (text.empty() && error->desc != nullptr) text = error->desc;
        return 0;
      },
      &reason);
  return reason.empty() ? "HDF5 gives no reason" : reason;
}

void hdf5_check(herr_t status, std::string_view what) {
  if (status < 0) throw Error("{}: {}", what, hdf5_reason());
}

hid_t hdf5_type(Type type) {
  // Not a static table: each name is a call into the library, which must have been started.
  switch (type) {
  case Type::u8:
    return H5T_STD_U8LE;
  case Type::u16:
    return H5T_STD_U16LE;
  case Type::u32:
    return H5T_STD_U32LE;
  case Type::u64:
    return H5T_STD_U64LE;
  case Type::i64:
    return H5T_STD_I64LE;
  case Type::f32:
    return H5T_IEEE_F32LE;
  case Type::f64:
    return H5T_IEEE_F64LE;
  }
  throw Error("no such element type");
}

DataType string_type(std::size_t length) {
  DataType type(H5Tcopy(H5T_C_S1), "string type");
  hdf5_check(H5Tset_size(type, std::max<std::size_t>(length, 1)), "string type");
  hdf5_check(H5Tset_strpad(type, H5T_STR_NULLPAD), "string type");
  hdf5_check(H5Tset_cset(type, H5T_CSET_UTF8), "string type");
  return type;
}

} // namespace noether::store
