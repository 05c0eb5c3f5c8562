internal import Dispatch
internal import FoundationEssentials
internal import Glibc
internal import LLHTTP
internal import LLService

/// Notices changes of the files that a reload reads again, with inotify(7) on their folders.
///
/// A folder's events alone tell of a rename and of a switched symbolic link, such as Kubernetes' `..data`. No event
/// comes from a network file system that another machine changes.
final class FollowedFiles: Sendable {
    /// Reloads run here, one after another. A file on a hanging volume delays nothing else.
    let queue = DispatchQueue(label: "reload")
    private let descriptor = inotify_init1(Int32(IN_NONBLOCK | IN_CLOEXEC))
    private let state = Locked((watches: [String: Int32](), files: [String](), facts: [[Int]?](), changeCount: 0))
    /// It ends when it is released. Only the command's thread sets it.
    private nonisolated(unsafe) var source: (any DispatchSourceRead)?

    /// The time from the last change to the reload: 1 s, so that a certificate and its key are read together.
    private static let pause = DispatchTimeInterval.seconds(1)
    /// The greatest number of symbolic links on the way to a file, as path_resolution(7) has it.
    private static let linkLimit = 40

    /// Follows the files of a configuration from now on; the caller reads them after this call.
    /// - Parameter wereRead: True if the files followed so far may have been read: a change since then still counts.
    @discardableResult
    func follow(_ configuration: ServiceConfiguration, wereRead: Bool = false) -> String? {
        let files = configuration.watchesFiles ? Self.files(of: configuration) : []
        let folders = Set(files.flatMap(Self.folders(on:)))
        return state.withLock { state in
            for watch in state.watches.filter({ !folders.contains($0.key) }).values {
                inotify_rm_watch(descriptor, watch)
            }
            state.watches = [:]
            var failure: String?
            for folder in folders {
                let watch = unsafe inotify_add_watch(descriptor, folder, Self.events)
                if watch < 0 { failure = "\(folder): \(SystemReason.sentence(for: errno))" }
                state.watches[folder] = watch < 0 ? nil : watch
            }
            let known = wereRead ? Dictionary(zip(state.files, state.facts)) { $1 } : [:]
            (state.files, state.facts) = (files, files.map { known[$0] ?? Self.facts(of: $0) })
            return failure
        }
    }

    private static let events = UInt32(
        IN_CLOSE_WRITE | IN_MOVE | IN_CREATE | IN_DELETE | IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR
    )

    /// Calls `reload` one second after the last change of a followed file, also of a change before this call.
    func start(_ reload: @escaping @Sendable () -> Void) {
        guard descriptor >= 0 else { return }
        let source = DispatchSource.makeReadSource(fileDescriptor: descriptor, queue: queue)
        source.setEventHandler { [self] in
            guard let change = takeChange() else { return }
            queue.asyncAfter(deadline: .now() + Self.pause) { [self] in
                if state.withLock({ $0.changeCount }) == change { reload() }
            }
        }
        source.activate()
        unsafe self.source = source
    }

    /// Empties the queue of events: the files' facts show a change. Returns its number; nil if no followed file has
    /// changed.
    private func takeChange() -> Int? {
        var events = [UInt8](repeating: 0, count: 4_096)
        // The buffer is the array's own storage and its own count.
        while unsafe events.withUnsafeMutableBytes({ unsafe read(descriptor, $0.baseAddress, $0.count) }) > 0 {}
        return state.withLock { state in
            let facts = state.files.map(Self.facts(of:))
            guard facts != state.facts else { return nil }
            state.facts = facts
            state.changeCount += 1
            return state.changeCount
        }
    }

    private static func files(of configuration: ServiceConfiguration) -> [String] {
        [configuration.file].compactMap(\.self)
            + Settings.rows.compactMap { row in
                guard [.file, .secretFile].contains(row.kind), [.rereads, .guards].contains(row.reload),
                    case .text(let path)? = configuration.value(row)
                else { return nil }
                return path
            }
    }

    /// The folders in which an exchange of one name leads the path elsewhere: that of each symbolic link, and the last.
    private static func folders(on path: String) -> [String] {
        var folders: [String] = []
        var folder = path.hasPrefix("/") ? "/" : "."
        var rest = Array(path.split(separator: "/").reversed())
        while let name = rest.popLast() {
            let place = "\(folder)/\(name)"
            if let target = try? FileManager.default.destinationOfSymbolicLink(atPath: place) {
                folders.append(folder)
                guard folders.count <= linkLimit else { break }
                if target.hasPrefix("/") { folder = "/" }
                rest += target.split(separator: "/").reversed()
                continue
            }
            let exists = unsafe access(place, F_OK) == 0
            if rest.isEmpty || !exists { folders.append(folder) }
            guard exists else { break }
            folder = place
        }
        return folders
    }

    /// The facts about a file that change with its content, owner or mode; nil for a file that cannot be found.
    private static func facts(of path: String) -> [Int]? {
        var facts = stat()
        guard unsafe stat(path, &facts) == 0 else { return nil }
        let (written, changed) = (facts.st_mtim, facts.st_ctim)
        return [
            Int(bitPattern: facts.st_dev), Int(bitPattern: facts.st_ino), Int(facts.st_size), written.tv_sec,
            written.tv_nsec, changed.tv_sec, changed.tv_nsec,
        ]
    }
}
