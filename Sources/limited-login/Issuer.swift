internal import ArgumentParser
internal import FoundationEssentials
internal import LLHTTP
internal import LLStandIn
internal import LimitedLogin

struct Issuer: ServingCommand {
    static let configuration = CommandConfiguration(
        commandName: "issuer",
        abstract:
            "Runs a stand-in issuer: keys, POST /tokens, /refresh and /rotate, Graph, callbacks. Never for production.",
        discussion: """
            GET /login answers the token of a fresh login and what belongs beside it in POST /verify; GET /login/NAME one with \
            a fault, by the names of 'limited-login catalogue'. POST /tokens takes a JSON object of claims (all optional, any \
            type) and answers {"id_token": "…"}; ?declined=NAME,NAME and ?expired=NAME say what else the person was asked for, \
            and cnf, {"jkt": "…"}, binds the token. POST /refresh takes {"id_token": "…"}; ?way=silent makes a nonce of its \
            own. POST /access-tokens takes {"user", "app", "scopes", "type", "expiry", "auth_nonce"} and fields of /me; \
            ?revoked is a token revoked since, ?dead an iPhone's placeholder. POST /proofs with {"id_token", "method", "url"} \
            answers a DPoP proof. POST /rotate makes a new signing key. POST /users/ID/deauthorize and \
            /users/ID/data-deletion send Facebook's callback to --service-url. POST /clock with {"now": SECONDS} stops the \
            clock, and {} lets it go on; POST /faults with {"outage_seconds": N, "delay_milliseconds": N} takes the keys away, \
            or makes them slow. The dialog, Graph and uninstall are where Facebook has them. Exit code 0 stopped, 64 usage, \
            75 an address that is taken.
            """
    )

    @Option(
        help: "Address and port, HOST:PORT; a loopback address. Port 0 takes a free one. (default: 127.0.0.1:8090)",
        transform: Loopback.read
    )
    var listen = SocketAddress.loopback(port: 8090)

    @Flag(help: "Listen on all addresses of a container, at the port of --listen.")
    var container = false

    @Option(
        help: ArgumentHelp(
            "A name by which other containers reach it; repeat it. Other hosts get 421.",
            valueName: "name"
        )
    )
    var allowHost: [String] = []

    @Option(help: "Make the same keys and tokens for the same requests in the same order.")
    var seed: UInt64?

    @Option(name: .customLong("app-id"), help: "The audience of tokens whose request names none.")
    var appID = Demo.appID

    @Option(help: "The issuer of tokens whose request names none.")
    var issuer = "https://www.facebook.com"

    @Option(help: "The secret of every app, with which Graph is asked.")
    var appSecret = "stand-in-app-secret"

    @Option(name: .customLong("service-url"), help: "The service that Facebook's callbacks go to: http://HOST:PORT.")
    var serviceURL: String?

    @Option(help: "Seconds the JWK Set may be cached (Cache-Control: max-age).")
    var maxAge = 3600

    func validate() throws {
        guard maxAge >= 0 else { throw ValidationError("--max-age must not be negative.") }
        for name in allowHost where name.isEmpty || name.contains(where: { ":/ ".contains($0) }) {
            throw ValidationError("--allow-host is a name alone, such as facebook, without scheme and port.")
        }
        guard container || allowHost.isEmpty else {
            throw ValidationError("--allow-host needs --container: on loopback no other machine reaches the issuer.")
        }
        if let serviceURL, (try? HTTPURL(parsing: serviceURL)) == nil || serviceURL.hasSuffix("/") {
            throw ValidationError("--service-url must be https, or http on a loopback address, without a path.")
        }
    }

    func run() throws {
        if let seed { Chance.repeats(from: seed) }
        let names = container ? allowHost.map { $0.lowercased() } : nil
        let standIn = try StandInIssuer(issuer: issuer, audience: appID, maxAgeSeconds: maxAge, appSecret: appSecret) {
            if let names { SameOrigin.refusesHost(&$0, $1, but: names) } else { false }
        }
        let listen = container ? SocketAddress("0.0.0.0:\(listen.port)") ?? listen : listen
        standIn.service.withLock { $0 = serviceURL }
        try ProcessSignals.run { () throws(StartError) in
            let base = try standIn.serve(at: listen, "--listen")
            StandardOutput.write("stand-in issuer on \(base)")
            StandardOutput.write(
                "It signs for everybody, and its tokens are worth nothing: never trust it in production."
            )
            StandardOutput.write("JWK Set: \(base)/.well-known/oauth/openid/jwks/")
            StandardOutput.write("curl -sS -X POST \(base)/tokens -d '{\"nonce\":\"abc\"}'")
            StandardOutput.write("curl -sS -X POST \(base)/rotate")
        } stop: {
            standIn.stop()
        }
    }
}

extension StandInIssuer {
    /// Starts at the address of a flag, and returns the beginning of its URLs.
    func serve(
        at address: SocketAddress,
        _ flag: String,
        behind front: @escaping @Sendable (StandInIssuer) -> any HTTPRequestHandler = { $0 }
    ) throws(StartError) -> String {
        do throws(SocketError) {
            try start(at: address, behind: front)
        } catch { throw StartError(error, flag) }
        return "http://\((self.address ?? address).reachable)"
    }
}

struct Catalogue: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "catalogue",
        abstract: "Tokens that a backend must refuse, and some that it must accept: writes them, or tries a backend.",
        subcommands: [WriteCatalogue.self, RunCatalogue.self],
        defaultSubcommand: WriteCatalogue.self
    )
}

struct WriteCatalogue: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "write",
        abstract:
            "Writes tokens that a backend must refuse, and some that it must accept, with the keys to judge them.",
        discussion: """
            FOLDER then has keys.json (the JWK Set), tokens/NAME.jwt, and catalogue.json, which says of each token what \
            is wrong, what to send with it, and whether it must be refused. The tokens are of an hour: run it again \
            before your tests. Exit code 0 done, 64 usage, 78 a folder that cannot be written to.
            """
    )

    @Option(help: "The folder to write to; it is made where it does not exist.", completion: .directory)
    var out: String

    @Option(name: .customLong("app-id"), help: "The app that the tokens are for.")
    var appID = Demo.appID

    @Option(help: "The issuer of the tokens.")
    var issuer = "https://www.facebook.com"

    @Option(parsing: .unconditional, help: "The nonce of the login.")
    var nonce = "n-0S6_WzA2MjQ9xT"

    func run() throws {
        do {
            let standIn = try StandInIssuer(issuer: issuer, audience: appID, appSecret: "")
            let workshop = try standIn.workshop(nonce: nonce)
            let folder = URL(filePath: out, directoryHint: .isDirectory)
            let tokens = folder.appending(path: "tokens")
            try FileManager.default.createDirectory(at: tokens, withIntermediateDirectories: true)
            try Data(TokenMinter.jwkSet(standIn.keys.published)).write(to: folder.appending(path: "keys.json"))
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
        } catch { throw Exit.refusing("--out \(out): \(error)") }
    }

    private static func json(_ entry: CatalogueEntry, _ workshop: CatalogueWorkshop) -> String {
        let json: JSON = [
            "name": JSON(entry.name), "file": "tokens/\(entry.name).jwt", "fault": JSON(entry.fault),
            "outcome": entry.code == nil ? "accept" : "refuse",
            "request": JSON(entry.requestMembers(workshop).map { ($0.name, JSON($0.value)) }),
            "code": JSON(entry.code?.rawValue),
            "setting": entry.setting.map { setting in JSON([(setting.name, JSON { $0 += setting.value.utf8 })]) },
            "presentations": entry.presentations > 1 ? JSON(entry.presentations) : nil,
        ]
        return json.text
    }
}
