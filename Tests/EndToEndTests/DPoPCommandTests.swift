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

    @Test("A proof is accepted only for its request, its token and its time")
    func roundTrip() throws {
        let issuer = try IssuerProcess()
        let folder = try ShortFolder()
        let file = try folder.write("token", "x")
        let make = ["make", "--key-file", try folder.write("device.pem", Self.device), "--method", "POST"]
        func dpop(_ words: [String], input: String = "") throws -> FinishedRun {
            try FinishedRun(["dpop"] + words + ["--token-file", file, "--url", Self.url], input: input)
        }
        let thumbprint = try #require(try dpop(make + ["--json"]).object["key_thumbprint"] as? String)
        let token = try issuer.token(#"{"cnf":{"jkt":"\#(thumbprint)"}}"#)
        try folder.write("token", "\(token)\n")
        let proof = try dpop(make + ["--at", "1700000000"]).output
        let other = "-" + String(repeating: "x", count: 42)
        for (words, begin, part) in [
            (["--method", "POST", "--at", "1700000300"], "accepted\n", "  key_thumbprint: \(thumbprint)\n"),
            (["--method", "POST", "--at", "1700000000", "--json"], #"{"accepted":true,"#, thumbprint),
            (["--at", "1700000000"], "refused\n  code: invalid_dpop_proof\n", "htm"),
            (["--method", "POST", "--at", "1700000301"], "refused\n  code: invalid_dpop_proof\n", "iat"),
            (["--method", "POST", "--at", "1700000000", "--key-thumbprint", other], "refused\n", "key"),
        ] {
            let judged = try dpop(["judge", "-"] + words, input: proof)
            #expect(judged.exitCode == (begin.contains("refused") ? 1 : 0), "\(judged)")
            #expect(judged.output.hasPrefix(begin) && judged.output.contains(part), "\(judged)")
        }
        // The stand-in has another device key.
        let theirs = try issuer.post("/proofs", #"{"id_token":"\#(token)","method":"GET","url":"\#(Self.url)"}"#)
        let judge = ["judge", try #require(theirs.member("proof"))]
        let foreign = try dpop(judge)
        #expect(foreign.exitCode == 1 && foreign.output.contains("not the one that the token is bound to"))
        let bound = try #require(theirs.member("key_thumbprint"))
        #expect(try dpop(judge + ["--key-thumbprint", bound]).exitCode == 0)
    }
}
