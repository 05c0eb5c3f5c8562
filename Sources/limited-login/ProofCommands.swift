internal import ArgumentParser
internal import LLHTTP
internal import LLJOSE
internal import LLService
internal import LLStandIn
internal import LimitedLogin

struct DPoPCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "dpop",
        abstract: "Makes and judges DPoP proofs (RFC 9449).",
        subcommands: [Judge.self, Make.self]
    )

    struct Request: ParsableArguments {
        @Option(help: "The request's method.")
        var method = "GET"

        @Option(help: "The request's URL; query and fragment do not count.")
        var url: String

        @Option(help: "A file with the id token that the request brings.", completion: .file())
        var tokenFile: String

        @OptionGroup var time: AsOf

        func validate() throws {
            guard TargetURI(url.utf8.span) != nil else {
                throw ValidationError("--url must be an absolute URL: https://HOST/PATH.")
            }
            guard !method.isEmpty, method.utf8.allSatisfy(FieldGrammar.isTokenByte) else {
                throw ValidationError("--method is no method of HTTP.")
            }
        }

        func token() throws -> String {
            let bytes = TokenInput.trimmed(try TokenInput.contents(of: tokenFile, code: Exit.configuration))
            guard !bytes.isEmpty else { throw ValidationError("The token in \(tokenFile) is empty.") }
            return String(decoding: bytes, as: UTF8.self)
        }
    }

    struct Judge: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "judge",
            abstract: "Judges a proof against the request and the token it came with.",
            discussion: """
                Exit code 0 accepted, 1 refused, 64 usage, 78 a file. The token itself is judged by 'limited-login verify'; \
                whether the proof was used before is for the service to know.
                """
        )

        @Argument(help: "The proof: the value of the DPoP field, or - to read it from standard input.")
        var proof: String

        @OptionGroup var request: Request

        // The thumbprint is base64url, so it may begin with a hyphen like an option.
        @Option(
            parsing: .unconditional,
            help: "The thumbprint of the device's key, instead of the token's own cnf.jkt."
        )
        var keyThumbprint: String?

        @Option(help: "How many seconds the device's clock may be ahead.")
        var clockSkewSeconds = 60

        @Flag(help: "Print one JSON object.")
        var json = false

        func validate() throws {
            guard [43, nil].contains(keyThumbprint?.utf8.count) else {
                throw ValidationError("--key-thumbprint must have 43 digits of base64url (RFC 7638).")
            }
        }

        func run() throws {
            let token = try request.token()
            let text = try TokenInput.read(argument: proof, file: nil)
            guard !text.isEmpty else { throw ValidationError("The proof is empty: nothing was given.") }
            let now = try request.time.moment()
            do {
                let bound = Array(token.utf8).unprovenThumbprint
                guard let thumbprint = keyThumbprint ?? bound else { throw Rejection.proofOfUnboundToken }
                let proof = try DPoPProof(
                    verifying: String(decoding: text, as: UTF8.self),
                    method: request.method,
                    url: request.url,
                    token: token,
                    keyThumbprint: thumbprint,
                    clockSkew: .seconds(clockSkewSeconds),
                    now: now
                )
                let issued = LocalTime.describe(proof.issuedAt, now: now)
                let members = [("key_thumbprint", proof.keyThumbprint), ("jti", proof.tokenID), ("iat", issued)]
                tell(isAccepted: true, members)
            } catch {
                let code = Rejection.Code.invalidDPoPProof.rawValue
                tell(isAccepted: false, [("code", code), ("detail", Rejection.of(error).detail)])
                throw Exit.rejected
            }
        }

        private func tell(isAccepted: Bool, _ members: [(name: String, text: String)]) {
            if json {
                let accepted: JSON.Member = ("accepted", JSON(isAccepted))
                return StandardOutput.write(json: JSON([accepted] + members.map { ($0.name, JSON($0.text)) }))
            }
            StandardOutput.write(line: isAccepted ? "accepted" : "refused")
            for (name, text) in members { StandardOutput.write(line: "  \(name): \(text)") }
        }
    }

    struct Make: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "make",
            abstract: "Prints a proof for a request: the value of its DPoP field.",
            discussion: """
                'openssl ecparam -name prime256v1 -genkey -noout -out device.pem' makes a device's key. The thumbprint of \
                that key is what cnf.jkt of a token must be that is bound to it. Exit code 0 done, 64 usage, 78 a file that cannot be used.
                """
        )

        @OptionGroup var request: Request

        @Option(help: "The device's P-256 key (PEM, not encrypted).", completion: .file())
        var keyFile: String

        @Flag(help: "Print one JSON object: the proof and its key's thumbprint.")
        var json = false

        func run() throws {
            let text = try TokenInput.contents(of: keyFile, flag: "--key-file: ", code: Exit.configuration)
            let minter: ProofMinter
            do throws(OpenSSLError) {
                let key = try PrivateKey(pem: text)
                guard !key.numbers.isRSA else { throw OpenSSLError("P-256 key") }
                minter = ProofMinter(key: key)
            } catch { throw Exit.refusing("--key-file: \(keyFile) holds no P-256 private key: \(error)") }
            let token = try request.token()
            let moment = try request.time.moment()
            do throws(OpenSSLError) {
                let (method, url, issuedAt) = (request.method, request.url, moment.wholeSeconds)
                let proof = try minter.mint(method: method, url: url, token: token, issuedAt: issuedAt)
                let thumbprint = try minter.thumbprint()
                guard json else { return StandardOutput.write(line: proof) }
                StandardOutput.write(json: ["proof": JSON(proof), "key_thumbprint": JSON(thumbprint)])
            } catch { throw Exit.refusing("no proof could be made: \(error)") }
        }
    }
}

struct SignedRequestCommand: ParsableCommand, SettingScope {
    static let configuration = CommandConfiguration(
        commandName: "signed-request",
        abstract: "Judges a signed request of Facebook's callbacks, or makes one to try your backend with.",
        discussion: "Needs app_secrets_file. Exit code 0 done, 1 refused, 64 usage, 78 configuration.",
        subcommands: [Judge.self, Make.self]
    )

    static func settings(of all: Settings) -> [any AnySetting] { [all.appIDs, all.appSecretsFile, all.clockSkew] }

    struct Judge: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "judge",
            abstract: "Tells the app, the person and the moment of a signed request, or why it is refused.",
            discussion: "Needs app_secrets_file. Exit code 0 accepted, 1 refused, 64 usage, 78 configuration."
        )

        @Argument(help: "The form field signed_request (after -- if it begins with a hyphen), or - for standard input.")
        var text: String

        @OptionGroup var time: AsOf

        @Flag(help: "Print one JSON object.")
        var json = false

        @OptionGroup var options: ConfigurationOptions<SignedRequestCommand>

        func run() throws {
            let (configuration, secrets) = try options.loadWithAppSecrets()
            let bytes = try TokenInput.read(argument: text, file: nil)
            guard !bytes.isEmpty else { throw ValidationError("The signed request is empty: nothing was given.") }
            let now = try time.moment()
            do {
                let (text, skew) = (String(decoding: bytes, as: UTF8.self), configuration.clockSkew)
                let request = try SignedRequest(verifying: text, secrets: secrets.signers, clockSkew: skew, now: now)
                guard json else {
                    StandardOutput.write(line: "app: \(request.appID)")
                    StandardOutput.write(line: "user: \(request.userID)")
                    return StandardOutput.write(line: "issued: \(LocalTime.describe(request.issuedAt, now: now))")
                }
                StandardOutput.write(json: [
                    "app_id": JSON(request.appID), "user_id": JSON(request.userID),
                    "issued_at": JSON(request.issuedAt.wholeSeconds),
                ])
            } catch {
                let refusal = Rejection.of(error)
                if json {
                    StandardOutput.write(json: ["code": JSON(refusal.code.rawValue), "detail": JSON(refusal.detail)])
                } else {
                    StandardOutput.write(line: "refused: \(refusal)")
                }
                throw Exit.rejected
            }
        }
    }

    struct Make: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "make",
            abstract: "Prints a signed request as Facebook would send it.",
            discussion: """
                For instance: curl http://127.0.0.1:8080/callbacks/deauthorize \
                --data-urlencode "signed_request=$(limited-login signed-request make 218471)"
                Needs app_secrets_file. Exit code 0 done, 64 usage, 78 configuration.
                """
        )

        @OptionGroup var person: PersonOptions

        @Option(
            help: "The moment it is made at: seconds since 1970, or 2024-01-31T12:00:00Z; now by default.",
            transform: Moment.read
        )
        var issuedAt: NumericDate?

        @OptionGroup var options: ConfigurationOptions<SignedRequestCommand>

        func run() throws {
            let secret = try person.app(options).1.secret
            let (user, seconds) = (person.userID, try (issuedAt ?? Moment.now()).wholeSeconds)
            guard let text = try? SignedRequestMinter.mint(userID: user, issuedAt: seconds, appSecret: secret) else {
                throw Exit.refusing("no signed request could be made")
            }
            StandardOutput.write(line: text)
        }
    }
}
