import Foundation
import LLHTTP
import Testing

@Suite("The limits of a control group")
struct ControlGroupTests {
    /// Reads the limits from files in a temporary folder, written as the system writes them.
    private func group(_ files: [String: String]) throws -> (memory: Int?, processorCount: Int?) {
        let root = FileManager.default.temporaryDirectory.appending(path: "control-group-\(UUID())")
        defer { try? FileManager.default.removeItem(at: root) }
        for (path, text) in files {
            let file = root.appending(path: path)
            let folder = file.deletingLastPathComponent()
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            try Data(text.utf8).write(to: file)
        }
        let group = ControlGroup(root: root.path, membership: root.appending(path: "membership").path)
        return (group.memory, group.processorCount)
    }

    @Test("The lowest limit counts, among the process's own group and the groups above it")
    func lowest() throws {
        let files = [
            "membership": "0::/a.slice/b.service\n", "memory.max": "max\n", "a.slice/memory.max": "67108864\n",
            "a.slice/b.service/memory.max": "134217728\n", "a.slice/cpu.max": "max 100000\n",
            "a.slice/b.service/cpu.max": "150000 100000\n",
        ]
        #expect(try group(files) == (67_108_864, 2))
        #expect(try group(files.merging(["membership": "0::/a.slice\n"]) { $1 }) == (67_108_864, nil))
        #expect(try group(files.merging(["membership": "0::/\n", "cpu.max": "50000 100000\n"]) { $1 }) == (nil, 1))
    }

    @Test("There is no limit if no file can be read")
    func nothing() throws {
        #expect(try group([:]) == (nil, nil))
        #expect(try group(["memory.max": "x\n", "cpu.max": "\n"]) == (nil, nil))
    }
}

@Suite("The watchdog of a service manager")
struct WatchdogTests {
    @Test("A sign of life is wanted after half of WATCHDOG_USEC, if that asks this process")
    func pulse() {
        for (variables, pulse) in [
            ([:], nil), (["WATCHDOG_USEC": "x"], nil), (["WATCHDOG_USEC": "30000000"], .seconds(15)),
            (["WATCHDOG_USEC": "2", "WATCHDOG_PID": "1"], nil),
            (["WATCHDOG_USEC": "2", "WATCHDOG_PID": "\(getpid())"], .microseconds(1)),
        ] as [([String: String], Duration?)] {
            #expect(ServiceManager.pulse(variables) == pulse, "\(variables)")
        }
    }
}
