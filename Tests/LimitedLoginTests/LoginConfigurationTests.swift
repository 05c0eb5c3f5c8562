import LimitedLogin
import Testing

@Suite("The configuration of a login")
struct LoginConfigurationTests {
    @Test("Permissions that the SDK or the dialog accepts are accepted, each once")
    func accepted() throws {
        let all = Permission.allCases.map(\.rawValue)
        let limited = try LoginConfiguration(permissions: all + ["email"], tracking: .limited, nonce: "n-1")
        #expect(limited.permissions == all && limited.nonce.value == "n-1" && limited.tracking == .limited)
        let names = ["user_likes", "pages_show_list", "user_actions.fitness"]
        #expect(try LoginConfiguration(permissions: names, tracking: .enabled, nonce: "n").permissions == names)
        #expect(try LoginConfiguration(permissions: [], tracking: .limited, nonce: "n").permissions.isEmpty)
    }

    @Test("A permission outside Limited Login's scope is refused by name")
    func outside() throws {
        for name in ["user_likes", "openid", "emails", "pages_show_list"] {
            let error = #expect(throws: LoginConfigurationError.self) {
                try LoginConfiguration(permissions: ["email", name], tracking: .limited, nonce: "n")
            }
            #expect(error?.description.contains(name) == true)
        }
    }

    @Test("A malformed permission or nonce is refused with either tracking", arguments: LoginTracking.allCases)
    func refused(tracking: LoginTracking) {
        for name in ["", "Email", "e-mail", " email", String(repeating: "a", count: 65)] {
            #expect(throws: LoginConfigurationError.malformedPermission) {
                try LoginConfiguration(permissions: [name], tracking: tracking, nonce: "n")
            }
        }
        for nonce in ["", "a b", "a\tb", "a\u{A0}b"] {
            #expect(throws: LoginConfigurationError.invalidNonce) {
                try LoginConfiguration(permissions: [], tracking: tracking, nonce: nonce)
            }
        }
    }
}
