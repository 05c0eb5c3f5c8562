import Testing

@testable import LLService

@Suite("Configuration: the table of settings")
struct ConfigurationTableTests {
    @Test(
        "The text of each default is a valid value of its setting",
        arguments: ConfigurationKey.allCases
    )
    func defaults(key: ConfigurationKey) throws {
        guard case .value(let value) = key.definition.standard else {
            #expect(!key.defaultText.isEmpty)
            return
        }
        let read = try ConfigurationSetting(text: key.defaultText, key: key, origin: .flag(key.flagName))
        #expect(read.value == value)
        if case .integer(let number) = value { #expect(key.definition.kind.range?.contains(number) == true) }
        if case .choice(let words) = key.definition.kind { #expect(words.contains(key.defaultText)) }
    }

    @Test("Each setting has a summary of one sentence on one line", arguments: ConfigurationKey.allCases)
    func summary(key: ConfigurationKey) {
        let summary = key.summary
        #expect(summary.hasSuffix(".") && !summary.contains("|") && !summary.contains("\n"))
    }

    @Test("Each setting has its own names, which differ from others by more than an underscore")
    func names() {
        let keys = ConfigurationKey.allCases
        #expect(Set(keys.map(\.flagName)).count == keys.count)
        #expect(Set(keys.map(\.environmentName)).count == keys.count)
        #expect(keys.allSatisfy { !$0.rawValue.contains("-") })
    }

    /// An old value, a new value, and the kinds of reload that allow the change.
    static let changes: [(ConfigurationValue?, ConfigurationValue?, Set<ConfigurationReload>)] = [
        (nil, nil, Set(ConfigurationReload.allCases)),
        (.text("a"), .text("a"), Set(ConfigurationReload.allCases)),
        (.text("a"), .text("b"), [.takesEffect, .rereads, .guards]),
        (nil, .text("a"), [.takesEffect, .guards]),
        (.text("a"), nil, [.takesEffect]),
    ]

    @Test("A reload may change a setting only as the setting allows", arguments: changes)
    func reload(old: ConfigurationValue?, new: ConfigurationValue?, allowed: Set<ConfigurationReload>) {
        for reload in ConfigurationReload.allCases {
            let refusal = reload.refusal(.listen, from: old, to: new)
            #expect((refusal == nil) == allowed.contains(reload), "\(reload)")
            #expect(refusal?.contains("listen") != false)
        }
    }

    @Test("A reload never removes a setting that restricts access")
    func guards() throws {
        let open = try Self.configuration([:])
        let guarded = try Self.configuration([.clientKeysFile: "/a", .nonceSecretFile: "/b"])
        #expect(guarded.refusal(after: open) == nil)
        #expect(open.refusal(after: guarded)?.contains("client_keys_file") == true)
        #expect(guarded.refusal(after: guarded) == nil)
    }

    @Test("Writing out a default is no change, nor is the same size or time in another unit")
    func sameValues() throws {
        let plain = try Self.configuration([:])
        let written = try Self.configuration([
            .jwksTTLSeconds: "1h", .memoryLimit: "65536KiB", .listen: "127.0.0.1:8080", .replayStore: "memory",
        ])
        #expect(written.refusal(after: plain) == nil)
        #expect(try Self.configuration([.workers: "3"]).refusal(after: plain)?.contains("workers") == true)
    }

    private static func configuration(_ flags: [ConfigurationKey: String]) throws -> ServiceConfiguration {
        try ConfigurationLoader.load(
            flags: flags.merging([.appIDs: "1"]) { $1 },
            environment: [:],
            file: nil,
            readsDefaultFile: false
        ).configuration
    }
}
