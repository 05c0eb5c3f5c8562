import BareVerify
import Foundation
import LimitedLogin
import LimitedLoginTesting

#if canImport(JWTKit)
import JWTKit

/// A payload declared as in jwt-kit's README, with the checks of its own `GoogleIdentityToken`.
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

/// One measured call, with its allocations and its processor time in many short rounds. The calls take turns.
final class Measurement {
    let name: String
    private let call: () async throws -> Void
    private let callOnMain: (@MainActor () async throws -> Void)?
    /// The time of a call in each round, in microseconds.
    private var rounds: [Double] = []
    private(set) var allocations = 0.0
    private static let callsPerRound = 200

    init(_ name: String, _ call: @escaping () async throws -> Void) {
        (self.name, self.call, callOnMain) = (name, call, nil)
    }

    init(onMain name: String, _ call: @escaping @MainActor () async throws -> Void) {
        (self.name, self.call, callOnMain) = (name, {}, call)
    }

    @MainActor
    private static func runOnMain(_ call: @MainActor () async throws -> Void) async throws {
        for _ in 0..<callsPerRound { try await call() }
    }

    func round() async throws {
        let (before, start) = (allocation_count(), processor_seconds())
        if let callOnMain {
            try await Self.runOnMain(callOnMain)
        } else {
            for _ in 0..<Self.callsPerRound { try await call() }
        }
        rounds.append((processor_seconds() - start) * 1e6 / Double(Self.callsPerRound))
        allocations = Double(allocation_count() - before) / Double(Self.callsPerRound)
    }

    var microseconds: Double { Self.median(rounds) }

    /// The median ratio of this call's time to the other's. The two times of a pair are measured one after the other.
    func ratio(to other: Measurement) -> Double { Self.median(zip(rounds, other.rounds).map(/)) }

    private static func median(_ values: [Double]) -> Double { values.sorted()[values.count / 2] }
}

@main
struct LibrarySpeed {
    static func main() async throws { exit(try await measure() ? 0 : 1) }

    /// Runs on the verifiers' executor, and one measurement on the main actor.
    /// - Returns: True if the promises hold.
    private nonisolated static func measure() async throws -> Bool {
        let keys = try (0..<64).map { _ in try TestKey() }
        let token = try keys[0].token(claims: [
            "nonce": "n-1", "email": "jane.doe@example.com", "name": "Jane Q Doe", "given_name": "Jane",
            "family_name": "Doe",
            "picture": "https://platform-lookaside.fbsbx.com/platform/profilepic/?asid=1&height=100",
        ])
        let parts = token.split(separator: ".")
        // Change one digit far from both ends: the signature keeps its length and alphabet, and is below the modulus.
        let place = parts[2].index(parts[2].startIndex, offsetBy: 200)
        let digit = parts[2][place] == "A" ? "B" : "A"
        let forged =
            parts[..<2].joined(separator: ".") + "." + parts[2][..<place] + digit + parts[2][place...].dropFirst()
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
                } catch let rejection as Rejection {
                    guard rejection.code == .invalidSignature else { throw rejection }
                }
            },
        ]
        #if canImport(JWTKit)
        let peer = try await JWTKeyCollection().add(jwksJSON: TestKey.keySetJSON(Array(keys[..<2])))
        all.append(Measurement("jwt-kit, 2 keys") { _ = try await peer.verify(token, as: PeerToken.self) })
        #endif
        let usual = Measurement("EVP_DigestVerify of the token") {
            guard bare_verify_run_message(bare) == 1 else { fatalError("the usual verification fails") }
        }
        let onMain = Measurement(onMain: "LoginVerifier, main actor") { _ = try await few.verify(token, nonce: "n-1") }
        all += [onMain, usual]
        for _ in 0..<101 { for measurement in all { try await measurement.round() } }
        func rounded(_ number: Double) -> Double { (number * 100).rounded() / 100 }
        for measurement in all {
            let (time, ratio) = (rounded(measurement.microseconds), rounded(measurement.ratio(to: all[0])))
            print("\(measurement.name): \(time) µs, \(ratio) × bare, \(measurement.allocations) allocations")
        }
        let (manyKeys, bad) = (all[2].ratio(to: all[1]), all[3].ratio(to: all[1]))
        print("64 keys: \(rounded(manyKeys)) × 2 keys; a bad signature: \(rounded(bad)) × a good one")
        print("LoginVerifier: \(rounded(all[1].ratio(to: usual))) × EVP_DigestVerify of the token")
        let own = all[1].allocations - all[0].allocations
        var faults: [String] = []
        if all[1].ratio(to: all[0]) > 1.6 { faults.append("more than 1.6 × the bare verification") }
        if all[1].ratio(to: usual) > 1.1 { faults.append("more than 1.1 × EVP_DigestVerify of the token") }
        if manyKeys > 1.05 { faults.append("64 keys cost more than 1.05 × 2 keys") }
        if bad > 1 { faults.append("a bad signature costs more than a good one") }
        if own > 12 { faults.append("\(own) allocations besides OpenSSL's") }
        if onMain.ratio(to: all[1]) > 1.15 {
            faults.append("from the main actor more than 1.15 × from elsewhere")
        }
        if all.count > 6 {
            let peer = all[4].ratio(to: all[1])
            print("jwt-kit: \(rounded(peer)) × LoginVerifier")
            if peer < 2 { faults.append("less than 2 × faster than jwt-kit") }
        }
        print(faults.isEmpty ? "the promises hold" : "FAILED: " + faults.joined(separator: "; "))
        return faults.isEmpty
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
