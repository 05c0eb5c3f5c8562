internal import Networking
internal import OpenSSL
internal import ReplayStores
internal import VerificationService

/// Makes the store of what was used that the configuration asks for; nothing is connected yet.
enum ReplayStoreFactory {
    /// Greatest size of a password's file, in bytes.
    private static let passwordByteLimit = 4_096

    static func make(
        _ configuration: ServiceConfiguration,
        onEvent: @escaping @Sendable (ReplayStoreEvent) -> Void
    ) throws(StartError) -> ReplayStore {
        guard let url = configuration.replayStore else {
            let now = WallClock.unixMilliseconds()
            return .memory(MemoryReplayStore(capacity: configuration.replayStoreCapacity, now: now))
        }
        do {
            let trust = configuration.caFile.map { TLSContext.Trust.authorities(file: $0) } ?? .system
            return .redis(
                try RedisReplayStore(
                    RedisReplayStore.Configuration(
                        url: url,
                        password: try configuration.replayStorePasswordFile.map { try password(path: $0) },
                        tls: url.isSecure ? try TLSContext(clientTrusting: trust, speaksHTTP: false) : nil
                    ),
                    observe: onEvent
                )
            )
        } catch let error as StartError {
            throw error
        } catch {
            throw StartError("the replay store cannot be used: \(error)")
        }
    }

    /// The file's one line; its end is no part of the password.
    private static func password(path: String) throws(StartError) -> [UInt8] {
        let contents: [UInt8]
        do throws(FileContents.Failure) {
            contents = try FileContents.read(path: path, limit: passwordByteLimit)
        } catch {
            throw StartError("\(path): the file cannot be read: \(error.reason)")
        }
        var line = contents[...]
        if line.last == 0x0A { line = line.dropLast() }
        if line.last == 0x0D { line = line.dropLast() }
        guard !line.isEmpty, !line.contains(where: { $0 == 0x0A || $0 == 0 }) else {
            throw StartError("\(path): the file must hold the password, on one line")
        }
        return Array(line)
    }
}
