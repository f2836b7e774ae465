// Preloaded into the program by crash_test.py: makes a store's writes fail, its file read-only, or the clock jump.
//
// FAULT_PATH: part of the paths that are hit. FAULT_KIND: full (ENOSPC), broken (EIO), readonly (EROFS at opening) or clock (the time of
// day goes back an hour at every second look). FAULT_AFTER: writes that succeed before the first that fails, in each process.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

enum { kMostDescriptors = 1024, kSecondsBack = 3600 };

static atomic_bool hit[kMostDescriptors];
static atomic_long writes;

static int is_kind(const char* kind) {
  const char* set = getenv("FAULT_KIND");
  return set != NULL && strcmp(set, kind) == 0;
}

static int opened(int descriptor, const char* path) {
  if (descriptor >= 0 && descriptor < kMostDescriptors) {
    const char* part = getenv("FAULT_PATH");
    hit[descriptor] = part != NULL && path != NULL && strstr(path, part) != NULL;
  }
  return descriptor;
}

static int refused(const char* path, int flags) {
  const char* part = getenv("FAULT_PATH");
  return is_kind("readonly") && part != NULL && strstr(path, part) != NULL && (flags & O_ACCMODE) != O_RDONLY;
}

#define OPEN(name)                                                          \
  int name(const char* path, int flags, ...) {                              \
    va_list arguments;                                                      \
    va_start(arguments, flags);                                             \
    const mode_t mode = (flags & O_CREAT) ? va_arg(arguments, mode_t) : 0;  \
    va_end(arguments);                                                      \
    if (refused(path, flags)) {                                             \
      errno = EROFS;                                                        \
      return -1;                                                            \
    }                                                                       \
    int (*next)(const char*, int, ...) = dlsym(RTLD_NEXT, #name);           \
    return opened(next(path, flags, mode), path);                           \
  }
OPEN(open)
OPEN(open64)

// 0: go on; else the error of this write.
static int fails(int descriptor) {
  if (descriptor < 0 || descriptor >= kMostDescriptors || !hit[descriptor]) return 0;
  const int error = is_kind("full") ? ENOSPC : is_kind("broken") ? EIO : 0;
  const char* after = getenv("FAULT_AFTER");
  return error != 0 && atomic_fetch_add(&writes, 1) >= (after == NULL ? 0 : atol(after)) ? error : 0;
}

#define WRITE(name, parameters, arguments)                    \
  ssize_t name parameters {                                   \
    const int error = fails(descriptor);                      \
    if (error != 0) {                                         \
      errno = error;                                          \
      return -1;                                              \
    }                                                         \
    ssize_t(*next) parameters = dlsym(RTLD_NEXT, #name);      \
    return next arguments;                                    \
  }
WRITE(write, (int descriptor, const void* data, size_t size), (descriptor, data, size))
WRITE(pwrite, (int descriptor, const void* data, size_t size, off_t at), (descriptor, data, size, at))
WRITE(pwrite64, (int descriptor, const void* data, size_t size, off64_t at), (descriptor, data, size, at))

int clock_gettime(clockid_t clock, struct timespec* now) {
  static atomic_long looks;
  int (*next)(clockid_t, struct timespec*) = dlsym(RTLD_NEXT, "clock_gettime");
  const int result = next(clock, now);
  if (result == 0 && clock == CLOCK_REALTIME && is_kind("clock") && atomic_fetch_add(&looks, 1) % 2 == 1) now->tv_sec -= kSecondsBack;
  return result;
}
