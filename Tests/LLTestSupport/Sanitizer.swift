internal import Glibc

/// True if the process runs under a sanitizer. Its own memory and time would spoil a measurement.
package enum Sanitizer {
    package static let isActive = unsafe dlsym(nil, "__tsan_init") != nil || dlsym(nil, "__asan_init") != nil
}
