import Foundation
import LLTestSupport
import Testing

@Suite("dpop: proofs made and judged on the command line", .live)
struct DPoPCommandTests {
    /// The key of a device that only these tests use.
    private static let device = """
        -----BEGIN EC PRIVATE KEY-----
        MHcCAQEEIBTd4YwT4WWswk7HsuPLHXcFnXw5sGzvv0NQ54dhkuz1oAoGCCqGSM49
        AwEHoUQDQgAEITZNFhU4OP1nHiYs9+89mHBZDj7kEt6H27yx8HOcpmVoRXZzrbpA
        wh59ybTQohhloBKgCZSEYV+c+XFWMvQRDA==
        -----END EC PRIVATE KEY-----

        """
    private static let url = "https://api.example.com/orders"

    private struct Made: Decodable {
        let proof: String
        let keyThumbprint: String

        enum CodingKeys: String, CodingKey {
            case proof
            case keyThumbprint = "key_thumbprint"
        }
    }

    private static func request(_ folder: ShortFolder, _ more: [String] = []) -> [String] {
        ["--token-file", "\(folder.path)/token"] + (more.contains("--url") ? [] : ["--url", url]) + more
    }

    /// A folder with a device's key and a token.
    private static func folder(token: String) throws -> ShortFolder {
        let folder = try ShortFolder()
        try folder.write("device.pem", device)
        try folder.write("token", "\(token)\n")
        return folder
    }

    @Test("A proof is accepted only for its request, its token and its time")
    func roundTrip() throws {
        let issuer = try IssuerProcess()
        let folder = try Self.folder(token: "x")
        let make = ["dpop", "make", "--key-file", "\(folder.path)/device.pem"]
        let first = try FinishedRun(make + Self.request(folder, ["--json"]))
        let thumbprint = try JSONDecoder().decode(Made.self, from: Data(first.output.utf8)).keyThumbprint
        #expect(thumbprint.utf8.count == 43)
        let token = try issuer.token(#"{"cnf":{"jkt":"\#(thumbprint)"}}"#)
        try folder.write("token", token)
        let made = try FinishedRun(make + Self.request(folder, ["--method", "POST", "--at", "1700000000"]))
        #expect(made.exitCode == 0 && made.output.split(separator: ".").count == 3)
        let proof = made.output.trimmingCharacters(in: .whitespacesAndNewlines)
        func judge(_ more: String...) throws -> FinishedRun {
            try FinishedRun(["dpop", "judge", proof] + Self.request(folder, more))
        }
        let accepted = try judge("--method", "POST", "--at", "1700000300")
        #expect(accepted.exitCode == 0 && accepted.output.hasPrefix("accepted\n"))
        #expect(accepted.output.contains("key_thumbprint: \(thumbprint)"))
        for (arguments, sentence) in [
            (["--at", "1700000000"], "htm"), (["--method", "POST", "--at", "1700000301"], "iat"),
            (
                [
                    "--method", "POST", "--at", "1700000000", "--key-thumbprint",
                    "-" + String(repeating: "x", count: 42),
                ], "key"
            ),
        ] {
            let refused = try FinishedRun(["dpop", "judge", "-"] + Self.request(folder, arguments), input: proof)
            #expect(refused.exitCode == 1 && refused.output.hasPrefix("refused\n  code: invalid_dpop_proof\n"))
            #expect(refused.output.contains(sentence), "\(refused.output)")
        }
        let json = try judge("--method", "POST", "--at", "1700000000", "--json")
        #expect(json.output.hasPrefix(#"{"accepted":true,"key_thumbprint":""#))
        // The stand-in has another device key.
        let theirs = try issuer.post("/proofs", #"{"id_token":"\#(token)","method":"GET","url":"\#(Self.url)"}"#)
        #expect(theirs.status == 200)
        let other = try JSONDecoder().decode(Made.self, from: Data(theirs.body))
        let foreign = try FinishedRun(["dpop", "judge", other.proof] + Self.request(folder))
        #expect(foreign.exitCode == 1 && foreign.output.contains("not the one that the token is bound to"))
        let bound = ["--key-thumbprint", other.keyThumbprint]
        #expect(try FinishedRun(["dpop", "judge", other.proof] + Self.request(folder, bound)).exitCode == 0)
        #expect(try issuer.post("/proofs", #"{"method":"GET","url":"x"}"#).status == 400)
    }
}
