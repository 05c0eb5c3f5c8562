internal import Dispatch
internal import Glibc

/// SIGHUP as a sequence, trapped from the moment ``trap()`` returns: a signal that came before would end the process,
/// or be lost between two ways of handling it.
///
/// Dispatch objects may be used from any thread; hence `@unchecked Sendable`.
final class HangUpSignal: @unchecked Sendable {
    /// One element for each signal; several that come at once may be one.
    let signals: AsyncStream<Void>
    private let source: any DispatchSourceSignal

    private init() {
        let (signals, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        self.signals = signals
        // Else the signal's own action, the end of the process, would be taken besides.
        _ = signal(SIGHUP, SIG_IGN)
        source = DispatchSource.makeSignalSource(signal: SIGHUP, queue: .global())
        source.setEventHandler { continuation.yield() }
    }

    deinit { source.cancel() }

    static func trap() async -> HangUpSignal {
        let hangUp = HangUpSignal()
        await withCheckedContinuation { registered in
            hangUp.source.setRegistrationHandler { registered.resume() }
            hangUp.source.resume()
        }
        return hangUp
    }
}
