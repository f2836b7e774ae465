// Included before all of llama.cpp's sources. g++ 12 takes ldtilecfg and sttilecfg for instructions on 8 bytes instead
// of 64, so that the shapes of tiles may be left unwritten: llama.cpp's products on AMX then end in a segmentation
// fault.
#pragma once

#if defined(__x86_64__) && defined(__AMX_TILE__) && defined(__GNUC__) && !defined(__clang__)
#include <immintrin.h>

struct decodelab_tile_config {
  unsigned char bytes[64];
};
#define _tile_loadconfig(config) __asm__ volatile("ldtilecfg %0" ::"m"(*(const struct decodelab_tile_config*)(config)))
#define _tile_storeconfig(config) __asm__ volatile("sttilecfg %0" : "=m"(*(struct decodelab_tile_config*)(config)))
#endif
