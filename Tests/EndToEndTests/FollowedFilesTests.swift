import Dispatch
import FoundationEssentials
import LLService
import LLTestSupport
import Testing

@testable import limited_login

@Suite("The files that a reload reads again", .live)
struct FollowedFilesTests {
    @Test("A file that changes after it was read, and before its facts are taken again, is read again")
    func changedMeanwhile() throws {
        let folder = try ShortFolder()
        let path = "\(folder.path)/settings.json"
        try Data(#"{"app_ids": ["1"]}"#.utf8).write(to: URL(filePath: path))
        let read = { try ConfigurationLoader.load(flags: [:], environment: [:], file: path) }
        let (files, changed) = (FollowedFiles(), DispatchSemaphore(value: 0))
        files.follow(try read())
        let configuration = try read()
        try Data(#"{"app_ids": ["1", "2"]}"#.utf8).write(to: URL(filePath: path))
        files.follow(configuration, wereRead: true)
        files.start { changed.signal() }
        #expect(becomesTrue { changed.wait(timeout: .now() + .milliseconds(100)) == .success })
    }
}
