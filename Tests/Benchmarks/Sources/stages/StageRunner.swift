internal import LLBytes
internal import LLHTTP
internal import LLJOSE
internal import LLService
internal import LimitedLogin

/// The parts of a request that can be measured alone.
enum Stage: String, CaseIterable {
    case nothing, httpParse = "http-parse", body, base64url, header, sha256, rsa, payload, signature, judge, answer
    case encode, request, revocations, auth, exchange
}

/// Runs the stages, and reuses their memory as a worker does.
final class StageRunner {
    private let inputs: Inputs
    private let service: Service
    private let prepared: Prepared
    private var workspace = VerificationWorkspace()
    private var response = HTTPResponse()
    private var parser = RequestParser(limits: HTTPLimits())
    private var head = RequestHead()
    private var requestDocument = JSONDocument(limits: .ofRequest)
    private var document = JSONDocument()
    private var header = JSONObject()
    private var buffer: [UInt8] = []
    private var encoder = ResponseEncoder()

    init(_ prepared: Prepared, inputs: Inputs, service: Service) {
        self.prepared = prepared
        self.inputs = inputs
        self.service = service
        response.addField("Content-Type: application/json")
        response.addField("Cache-Control: no-store")
        response.addField("X-Request-Id", "abcdef01-1-1")
        writeAnswer()
        response.body = buffer
    }

    /// The counter of instructions counts within this function alone, so it is not inlined.
    @inline(never)
    func run(_ stage: Stage, _ index: Int) throws {
        switch stage {
        case .httpParse: try parse(index)
        case .body:
            let body = inputs.bodies[index]
            _ = try LoginRequest(body.span, with: &requestDocument)
        case .base64url: try decode(index)
        case .header: try readHeader(index)
        case .sha256: try digest(index)
        case .rsa:
            let signature = inputs.signatures[index]
            guard prepared.key.isValidSignature(signature.span, of: prepared.digests[index]) else {
                throw Failure("rsa")
            }
        case .payload: try document.parse(inputs.payloads[index])
        case .signature:
            let token = inputs.tokens[index]
            try prepared.verifier.authenticate(token.span, keys: prepared.keys, workspace: &workspace)
        case .judge: try judge(index)
        case .answer: writeAnswer()
        case .encode: encode()
        case .request, .revocations: try service.answer(inputs.requests[index])
        case .auth: try service.answer(inputs.gatewayRequests[index])
        case .exchange: try service.answer(inputs.exchangeRequests[index])
        case .nothing: break
        }
    }

    private func parse(_ index: Int) throws {
        parser.reset(&head)
        let request = inputs.requests[index]
        guard try parser.parse(request.span, into: &head) else { throw Failure("http") }
    }

    private func decode(_ index: Int) throws {
        let token = inputs.tokens[index]
        guard let jws = JWSCompactSerialization(splitting: token.span),
            Base64URL.decode(token.span, jws.header, into: &buffer),
            Base64URL.decode(token.span, jws.payload, into: &buffer),
            Base64URL.decode(token.span, jws.signature, into: &buffer)
        else { throw Failure("base64url") }
    }

    private func readHeader(_ index: Int) throws {
        header.bytes = inputs.headers[index]
        guard try header.read(), header.member("kid") != nil else { throw Failure("header") }
    }

    private func digest(_ index: Int) throws {
        // A signature of 256 bytes takes 342 digits, after a full stop.
        let token = inputs.tokens[index]
        let signingInput = token.span.extracting(0..<max(0, token.count - 343))
        _ = try SHA256.digest(of: signingInput)
    }

    private func judge(_ index: Int) throws {
        let (token, nonce) = (inputs.tokens[index], inputs.nonces[index])
        _ = try prepared.verifier.judge(
            token.span,
            TokenExpectation(TokenBinding(nonce: nonce)),
            keys: prepared.keys,
            now: prepared.now,
            workspace: &workspace
        )
    }

    private func writeAnswer() {
        let (payload, keyID) = (inputs.payloads[0], prepared.keyID)
        buffer.removeAll(keepingCapacity: true)
        VerifyAnswer.write(
            prepared.claims,
            payload.span,
            keyID.span,
            asked: nil,
            isRefresh: false,
            to: &buffer
        )
    }

    private func encode() {
        buffer.removeAll(keepingCapacity: true)
        encoder.encode(
            response,
            method: .post,
            minorVersion: 1,
            keepAlive: true,
            unixSeconds: 1_800_000_000,
            to: &buffer
        )
    }
}
