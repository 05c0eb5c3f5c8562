import BareVerify
import Foundation
import LimitedLogin
import LimitedLoginTesting

#if canImport(JWTKit)
import JWTKit

/// The payload as jwt-kit's README has one declared, with the checks that its own `GoogleIdentityToken` makes.
struct PeerToken: JWTPayload {
    let iss: IssuerClaim
    let sub: SubjectClaim
    let aud: AudienceClaim
    let exp: ExpirationClaim
    let nonce: String

    func verify(using algorithm: some JWTAlgorithm) throws {
        guard iss.value == TestKey.issuer, nonce == "n-1" else {
            throw JWTError.claimVerificationFailure(failedClaim: iss, reason: "of another login")
        }
        try aud.verifyIntendedAudience(includes: TestKey.appID)
        try exp.verifyNotExpired()
    }
}
#endif

/// One measured call: the least processor time of many short rounds that take turns, and its allocations.
final class Measurement {
    let name: String
    private let call: () async throws -> Void
    private(set) var microseconds = Double.infinity
    private(set) var allocations = 0.0
    private static let callsPerRound = 200

    init(_ name: String, _ call: @escaping () async throws -> Void) {
        self.name = name
        self.call = call
    }

    func round() async throws {
        let (before, start) = (allocation_count(), processor_seconds())
        for _ in 0..<Self.callsPerRound { try await call() }
        let time = processor_seconds() - start
        allocations = Double(allocation_count() - before) / Double(Self.callsPerRound)
        microseconds = min(microseconds, time * 1e6 / Double(Self.callsPerRound))
    }
}

@main
struct LibrarySpeed {
    static func main() async throws {
        let keys = try (0..<64).map { _ in try TestKey() }
        let token = try keys[0].token(claims: [
            "nonce": "n-1", "email": "jane.doe@example.com", "name": "Jane Q Doe", "given_name": "Jane",
            "family_name": "Doe",
            "picture": "https://platform-lookaside.fbsbx.com/platform/profilepic/?asid=1&height=100",
        ])
        let parts = token.split(separator: ".")
        let forged = parts[0] + "." + parts[1] + "." + String(parts[2].reversed())
        let policy = try VerificationPolicy(appIDs: [TestKey.appID])
        func verifier(_ count: Int) -> LoginVerifier {
            LoginVerifier(policy: policy, keys: FixedKeys(TestKey.keySet(Array(keys[..<count]))))
        }
        let (few, many) = (verifier(2), verifier(64))
        let bare = bareVerify(keys[0], parts)
        var all = [
            Measurement("bare RSA-2048 verification") {
                guard bare_verify_run(bare) == 1 else { fatalError("the bare verification fails") }
            },
            Measurement("LoginVerifier, 2 keys") { _ = try await few.verify(token, nonce: "n-1") },
            Measurement("LoginVerifier, 64 keys") { _ = try await many.verify(token, nonce: "n-1") },
            Measurement("LoginVerifier, bad signature") {
                do {
                    _ = try await few.verify(forged, nonce: "n-1")
                    fatalError("a forged token is accepted")
                } catch let rejection as TokenRejection {
                    guard rejection.code == .invalidSignature else { throw rejection }
                }
            },
        ]
        #if canImport(JWTKit)
        let peer = try await JWTKeyCollection().add(jwksJSON: TestKey.keySetJSON(Array(keys[..<2])))
        all.append(Measurement("jwt-kit, 2 keys") { _ = try await peer.verify(token, as: PeerToken.self) })
        #endif
        for _ in 0..<60 { for measurement in all { try await measurement.round() } }
        for measurement in all {
            let (time, ratio) = (measurement.microseconds, measurement.microseconds / all[0].microseconds)
            print(
                "\(measurement.name): \((time * 100).rounded() / 100) µs, \((ratio * 100).rounded() / 100) × bare, "
                    + "\(measurement.allocations) allocations"
            )
        }
        let own = all[1].allocations - all[0].allocations
        var faults: [String] = []
        if all[1].microseconds > 1.6 * all[0].microseconds { faults.append("more than 1.6 × the bare verification") }
        if all[2].microseconds > 1.05 * all[1].microseconds { faults.append("64 keys cost more than 1.05 × 2 keys") }
        if all[3].microseconds > all[1].microseconds { faults.append("a bad signature costs more than a good one") }
        if own > 12 { faults.append("\(own) allocations besides OpenSSL's") }
        if all.count > 4, all[4].microseconds < 2 * all[1].microseconds {
            faults.append("less than 2 × faster than jwt-kit")
        }
        print(faults.isEmpty ? "the promises hold" : "FAILED: " + faults.joined(separator: "; "))
        exit(faults.isEmpty ? 0 : 1)
    }

    private static func bareVerify(_ key: TestKey, _ parts: [Substring]) -> OpaquePointer? {
        var text = parts[2].replacing("-", with: "+").replacing("_", with: "/")
        while text.count % 4 != 0 { text += "=" }
        let (published, signature) = (key.keySet.keys[0], Data(base64Encoded: String(text)).map { [UInt8]($0) } ?? [])
        let message = Array("\(parts[0]).\(parts[1])".utf8)
        return bare_verify_make(
            published.modulus,
            published.modulus.count,
            published.publicExponent,
            published.publicExponent.count,
            signature,
            signature.count,
            message,
            message.count
        )
    }
}
