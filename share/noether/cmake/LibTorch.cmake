# LibTorch's CPU library, from LIBTORCH or Torch_DIR (environment or -D) or from .deps/, where `make deps` puts it.
# TorchConfig.cmake is not used: the published packages' one insists on a CUDA installation.

set(candidates ${LIBTORCH} $ENV{LIBTORCH})
foreach(folder ${Torch_DIR} $ENV{Torch_DIR})
  cmake_path(GET folder PARENT_PATH share) # Torch_DIR is PREFIX/share/cmake/Torch
  cmake_path(GET share PARENT_PATH share)
  cmake_path(GET share PARENT_PATH prefix)
  list(APPEND candidates ${prefix})
endforeach()
list(APPEND candidates ${CMAKE_SOURCE_DIR}/.deps/libtorch/torch)

find_path(NOETHER_TORCH_ROOT include/ATen/ATen.h PATHS ${candidates} NO_DEFAULT_PATH)
if(NOT NOETHER_TORCH_ROOT)
  message(FATAL_ERROR "LibTorch was not found in: ${candidates}. Run `make deps`, or set LIBTORCH to its folder.")
endif()
file(READ ${NOETHER_TORCH_ROOT}/include/torch/headeronly/version.h version_text)
string(REGEX MATCH "TORCH_VERSION_MAJOR ([0-9]+)" _ "${version_text}")
set(major ${CMAKE_MATCH_1})
string(REGEX MATCH "TORCH_VERSION_MINOR ([0-9]+)" _ "${version_text}")
message(STATUS "LibTorch ${major}.${CMAKE_MATCH_1} in ${NOETHER_TORCH_ROOT}")

# Its include folder carries its own fmt, without the library. A folder that is searched first puts ours in its place, so that
# there is one fmt in the program.
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/fmt-first)
get_target_property(fmt_include fmt::fmt INTERFACE_INCLUDE_DIRECTORIES)
find_path(fmt_home fmt/format.h HINTS ${fmt_include})
file(CREATE_LINK ${fmt_home}/fmt ${CMAKE_BINARY_DIR}/fmt-first/fmt SYMBOLIC)

add_library(noether_libtorch INTERFACE)
target_include_directories(noether_libtorch INTERFACE ${CMAKE_BINARY_DIR}/fmt-first)
target_include_directories(noether_libtorch SYSTEM INTERFACE
  ${NOETHER_TORCH_ROOT}/include ${NOETHER_TORCH_ROOT}/include/torch/csrc/api/include)
target_link_directories(noether_libtorch INTERFACE ${NOETHER_TORCH_ROOT}/lib)
# The libraries that libtorch_cpu.so itself needs are found at run time by its own path.
target_link_libraries(noether_libtorch INTERFACE -Wl,--no-as-needed torch_cpu c10 -Wl,--as-needed)
target_link_options(noether_libtorch INTERFACE -Wl,--allow-shlib-undefined)
