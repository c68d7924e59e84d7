// How the process keeps its memory.
#pragma once

namespace noether::models {

/// Lets the C library keep what is freed for the next step, up to blocks of 32 MB (its limit), where it would by
/// default hand larger blocks than 128 kB back to the system and take fresh, zeroed pages for the same tensors in every
/// step. Call once, before the work.
void keep_freed_memory();

} // namespace noether::models
