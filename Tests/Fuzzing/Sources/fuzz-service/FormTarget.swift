import LLBytes
import LLJOSE
import LimitedLogin

@testable import LLService

/// Reads a form of `POST /token` and `POST /introspect`. Every value must be in the text, and an accepted request must
/// be the one that the text asks for.
func fuzzForm(_ input: [UInt8]) {
    guard let form = FormParameters(input.span, 0..<input.count) else { return }
    require(form.count <= FormParameters.countLimit, "a form keeps its limit")
    let pieces = input.split(separator: UInt8(ascii: "&"))
    require(form.count == pieces.count, "every parameter is read")
    let pairs = pieces.map { piece in
        let parts = piece.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
        return (name: decoded(parts[0]), value: decoded(parts.count > 1 ? parts[1] : []))
    }
    func values(_ name: String) -> [[UInt8]] { pairs.filter { $0.name.elementsEqual(name.utf8) }.map(\.value) }
    require(form.first("subject_token") == values("subject_token").first, "the first value is read")
    require(form.count(of: "nonce") == values("nonce").count, "every value is counted")
    let hasRepeatedName = pairs.indices.contains { pairs[..<$0].map(\.name).contains(pairs[$0].name) }
    require(form.hasRepeatedName == hasRepeatedName, "a repeated name is seen")
    if let request = try? TokenRequest(form, FormFixture.policy) {
        require(!hasRepeatedName, "a repeated name is refused")
        require(values("grant_type") == [Array(TokenRequest.grantType.utf8)], "the grant is an exchange")
        require(
            values("subject_token") == [request.login.token] && !request.login.token.isEmpty,
            "the token is the one given"
        )
        require(request.audience.map { ["b", "c"].contains($0) } != false, "the audience is a configured one")
        let nonces = ["nonce", "raw_nonce", "issued_nonce"].filter { values($0).contains { !$0.isEmpty } }
        require(nonces.count <= 1, "a login has one nonce")
        let isBound = !nonces.isEmpty || values("subject").contains { !$0.isEmpty }
        require(request.login.expectation.binding.isUnbound == !isBound, "a binding is what the text says")
    }
    if let request = try? IntrospectRequest(form) {
        require(values("token") == [request.token] && !request.token.isEmpty, "the token is the one given")
    }
}

/// A second implementation of form decoding (WHATWG URL Standard, application/x-www-form-urlencoded). Escapes are known
/// to be whole.
private func decoded(_ text: ArraySlice<UInt8>) -> [UInt8] {
    var (result, place): ([UInt8], Int) = ([], text.startIndex)
    while place < text.endIndex {
        if text[place] == UInt8(ascii: "%"), place + 2 < text.endIndex,
            let byte = UInt8(String(decoding: text[place + 1...place + 2], as: UTF8.self), radix: 16)
        {
            result.append(byte)
            place += 3
        } else {
            result.append(text[place] == UInt8(ascii: "+") ? UInt8(ascii: " ") : text[place])
            place += 1
        }
    }
    return result
}

private enum FormFixture {
    static let policy: TokenIssuerPolicy = {
        guard let policy = try? TokenIssuerPolicy(issuer: "https://a.example", audiences: ["b", "c"]) else {
            fatalError("the fixture is broken")
        }
        return policy
    }()
}

/// Ends the run when a property does not hold: libFuzzer keeps the input.
private func require(_ holds: Bool, _ what: StaticString) {
    guard holds else { fatalError("\(what)") }
}
