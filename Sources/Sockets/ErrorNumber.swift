internal import CSystemCalls

/// The system error numbers this target tells apart.
package enum ErrorNumber {
    package static let noSuchFile = Int32(PLATFORM_ENOENT)
    package static let interrupted = Int32(PLATFORM_EINTR)
    package static let again = Int32(PLATFORM_EAGAIN)
    package static let outOfMemory = Int32(PLATFORM_ENOMEM)
    package static let exists = Int32(PLATFORM_EEXIST)
    package static let invalid = Int32(PLATFORM_EINVAL)
    package static let systemFileLimit = Int32(PLATFORM_ENFILE)
    package static let processFileLimit = Int32(PLATFORM_EMFILE)
    package static let brokenPipe = Int32(PLATFORM_EPIPE)
    package static let protocolError = Int32(PLATFORM_EPROTO)
    package static let notSocket = Int32(PLATFORM_ENOTSOCK)
    package static let addressInUse = Int32(PLATFORM_EADDRINUSE)
    package static let connectionAborted = Int32(PLATFORM_ECONNABORTED)
    package static let connectionReset = Int32(PLATFORM_ECONNRESET)
    package static let noBufferSpace = Int32(PLATFORM_ENOBUFS)
    package static let timedOut = Int32(PLATFORM_ETIMEDOUT)
    package static let connectionRefused = Int32(PLATFORM_ECONNREFUSED)
    package static let inProgress = Int32(PLATFORM_EINPROGRESS)
}
