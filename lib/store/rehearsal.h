// Trying a foreign file in a child process before this process believes it. For this room alone.
#pragma once

#include "store/image.h"

namespace noether::store {

/// Throws Error when HDF5 crashes, loops or takes gigabytes over the image's metadata; whatever HDF5 merely refuses is
/// left for the reader to say. Files of ours are let through untried: their superblock is of version 2, where all that
/// HDF5 reads of them has a checksum. Older formats have none, and HDF5 has crashed on one damaged file of them in some
/// hundreds.
void rehearse(const Image& image, const std::string& name);

} // namespace noether::store
