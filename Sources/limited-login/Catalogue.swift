internal import ArgumentParser
internal import FoundationEssentials
internal import Sockets
internal import StandInIssuer

struct Catalogue: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract:
            "Writes tokens that a backend must refuse, and some that it must accept, with the keys to judge them.",
        discussion: """
            FOLDER then has keys.json (the JWK Set), tokens/NAME.jwt, and catalogue.json, which says of each token what \
            is wrong, what to send with it, and whether it must be refused. The tokens are of an hour: run it again \
            before your tests.
            """
    )

    @Option(help: "The folder to write to; it is made where it does not exist.", completion: .directory)
    var out: String

    @Option(name: .customLong("app-id"), help: "The app that the tokens are for.")
    var appID = Demo.appID

    @Option(help: "The issuer of the tokens.")
    var issuer = "https://www.facebook.com"

    @Option(parsing: .unconditional, help: "The nonce of the login.")
    var nonce = "n-0S6_WzA2Mj"

    func run() throws {
        do {
            let keys = try IssuerKeyRing()
            let workshop = try CatalogueWorkshop(
                template: ClaimsTemplate(issuer: issuer, audience: appID),
                keys: keys,
                nonce: nonce,
                now: WallClock.unixSeconds()
            )
            let folder = URL(filePath: out, directoryHint: .isDirectory)
            let tokens = folder.appending(path: "tokens")
            try FileManager.default.createDirectory(at: tokens, withIntermediateDirectories: true)
            try Data(TokenMinter.jsonWebKeySet(keys.published)).write(to: folder.appending(path: "keys.json"))
            for entry in CatalogueEntry.all {
                try Data(try entry.token(workshop).utf8).write(to: tokens.appending(path: "\(entry.name).jwt"))
            }
            let entries = CatalogueEntry.all.map { Self.json($0, workshop) }.joined(separator: ",\n  ")
            let header: JSON = [
                "issuer": JSON(issuer), "app_id": JSON(appID), "nonce": JSON(nonce), "made_at": JSON(workshop.now),
            ]
            let text = "\(header.text.dropLast()),\"tokens\":[\n  \(entries)\n]}\n"
            try Data(text.utf8).write(to: folder.appending(path: "catalogue.json"))
            StandardOutput.write(line: "\(CatalogueEntry.all.count) tokens, keys.json and catalogue.json are in \(out)")
        } catch let error as CocoaError {
            let path = error.filePath ?? out
            throw Exit.refusing("--out \(out): \(path) cannot be written; name a folder that you may write to")
        } catch {
            throw Exit.refusing("--out \(out): \(error)")
        }
    }

    private static func json(_ entry: CatalogueEntry, _ workshop: CatalogueWorkshop) -> String {
        let json: JSON = [
            "name": JSON(entry.name), "file": "tokens/\(entry.name).jwt", "fault": JSON(entry.fault),
            "outcome": entry.code == nil ? "accept" : "refuse",
            "request": JSON(entry.requestMembers(workshop).map { ($0.name, JSON($0.value)) }),
            "code": JSON(entry.code),
            "setting": entry.setting.map { setting in JSON([(setting.name, JSON { $0 += setting.value.utf8 })]) },
            "presentations": entry.presentations > 1 ? JSON(entry.presentations) : nil,
        ]
        return json.text
    }
}
