import LLHTTP
import LLStandIn
import LLTestSupport
import LimitedLogin
import Testing

@testable import LLService

@Suite("The fields in which /auth exports claims", .live)
struct AuthFieldTests {
    private static func fields(_ list: [String]) throws -> [AuthField] { try list.map { try AuthField($0) } }

    /// The answer of `/auth` to a payload with these members added to those of every token.
    private static func answer(_ list: [String]?, _ members: String, sub: String = "1") async throws -> TestResponse {
        let gateway = try list.map { GatewaySettings(fields: try fields($0)) } ?? GatewaySettings()
        let service = try await InProcessService(gateway: gateway)
        let now = WallClock.unixSeconds()
        let payload = """
            {"iss":"https:\\/\\/www.facebook.com","aud":"\(InProcessService.appID)","sub":"\(sub)","iat":\(now),\
            "exp":\(now + 60),"jti":"j","nonce":"n"\(members.isEmpty ? "" : ",")\(members)}
            """
        let minter = StandInKeys.current
        let token = try minter.mint(header: minter.header, payload: Array(payload.utf8))
        return try service.answer("GET", "/auth", fields: ["Authorization: Bearer \(token)"])
    }

    @Test("Every claim can be exported except an unproven key, and the list replaces the default one")
    func everyClaim() async throws {
        let list = AuthField.claims.map { "X-\($0.name.replacing(/[_.]/, with: "-"))=\($0.name)" }
        let answer = try await Self.answer(
            list + ["Remote-User=sub"],
            #""email":"a@b.c","name":"Jane","given_name":"J","middle_name":"Q","family_name":"D","picture":"https:\/\/p.q\/","#
                + #""cnf":{"jkt":"k"}"#
        )
        #expect(answer.status == 200)
        for (name, value) in [
            ("sub", "1"), ("aud", InProcessService.appID), ("iss", "https://www.facebook.com"), ("jti", "j"),
            ("email", "a@b.c"), ("name", "Jane"), ("given-name", "J"), ("middle-name", "Q"), ("family-name", "D"),
            ("picture", "https://p.q/"),
        ] { #expect(answer["x-\(name)"] == value) }
        #expect(answer["x-cnf-jkt"] == nil)
        let (start, end) = (answer["x-iat"].flatMap { Int($0) }, answer["x-exp"].flatMap { Int($0) })
        #expect(start != nil && end == start.map { $0 + 60 })
        #expect(answer["remote-user"] == "1" && answer["x-auth-subject"] == nil)
    }

    @Test(
        "Percent signs and all but visible ASCII are percent-encoded as UTF-8",
        arguments: [
            ("Жанна Дарк", "%D0%96%D0%B0%D0%BD%D0%BD%D0%B0%20%D0%94%D0%B0%D1%80%D0%BA"),
            (#"\u0416"#, "%D0%96"), ("😀", "%F0%9F%98%80"), (#"\ud83d\ude00"#, "%F0%9F%98%80"), ("100%", "100%25"),
            ("%41", "%2541"), (" a ", "%20a%20"), (#"a\nX-Auth-Subject: 2"#, "a%0AX-Auth-Subject:%202"),
            (#"\r\n\r\n"#, "%0D%0A%0D%0A"), (#"\u0000\u007f\t"#, "%00%7F%09"), (#"\"\\\/"#, #""\/"#),
            ("!#$&'()*+,-./:;<=>?@[]^_`{|}~", "!#$&'()*+,-./:;<=>?@[]^_`{|}~"),
        ]
    )
    func encoding(json: String, value: String) async throws {
        let answer = try await Self.answer(["X-Auth-Subject=sub", "X-Auth-Name=name"], #""name":"\#(json)""#)
        #expect(answer.status == 200 && answer["x-auth-name"] == value && answer["x-auth-subject"] == "1")
        #expect(answer.fields.count { $0.name.hasPrefix("x-auth-") } == 2)
    }

    @Test("A field's value is visible ASCII, whatever bytes the claim holds")
    func everyByte() {
        let plain = Array("abcdefghijklmnopqrstuvwxyzabcdefghij".utf8)
        for byte in UInt8.min ... .max {
            for place in plain.indices {
                var text = plain
                text[place] = byte
                var value: [UInt8] = []
                let room = AuthFieldValue.room(for: text.indices)
                value.append(addingCapacity: room) { (output: inout OutputSpan<UInt8>) in
                    _ = AuthFieldValue.append(text.indices, in: text.span, to: &output)
                }
                #expect(value.allSatisfy { (0x21...0x7E).contains($0) }, "\(byte) at \(place)")
            }
        }
    }

    @Test("A claim that is absent, of another type, empty or longer than 1,024 bytes exports no field; sub is then 401")
    func absent() async throws {
        func name(_ json: String) async throws -> String? {
            let answer = try await Self.answer(["X-Auth-Name=name"], json.isEmpty ? "" : #""name":\#(json)"#)
            #expect(answer.status == 200)
            return answer["x-auth-name"]
        }
        let longest = String(repeating: "x", count: 1_024)
        for json in ["", #""""#, "5", "null", #"["Jane"]"#, "\"\(longest)x\"", "\"\(longest.dropLast())Ж\""] {
            #expect(try await name(json) == nil)
        }
        #expect(try await name("\"\(longest)\"") == longest)
        // The limit applies to the claim's value. Escapes and encoding may make it longer.
        #expect(try await name("\"\(longest.dropLast())\\u0078\"") == longest)
        #expect(try await name("\"\(String(repeating: "Ж", count: 512))\"")?.utf8.count == 3_072)
        let refused = try await Self.answer(nil, "", sub: longest + "x")
        #expect(refused.status == 401 && refused.code == "malformed_claim")
        #expect(refused["www-authenticate"] == #"Bearer error="invalid_token", code="malformed_claim""#)
        #expect(refused["x-auth-audience"] == nil)
    }

    @Test("An invalid mapping is refused")
    func refused() {
        for text in [
            "", "X-Auth-Name", "=name", "X-Auth-Name=", "X-Auth-Name=Name", "X-Auth-Name=phone", "X-Auth-Name= name",
            "X_Auth_Name=name", "X-Auth_Name=name", "X.Auth.Name=name", "X-Auth-Ñame=name", "X Auth=name", "-X=name",
            "X-Auth:=name", "Host=name", "host=sub", "Connection=sub", "Keep-Alive=sub", "TE=sub", "Trailer=sub",
            "Transfer-Encoding=sub", "Upgrade=sub", "Proxy-Authorization=sub", "Proxy-Connection=sub",
            "Content-Length=sub", "Content-Type=name", "Authorization=jti", "Cookie=sub", "Set-Cookie=sub", "DPoP=jti",
            "X-Forwarded-Host=name", "X-Forwarded-For=sub", "X-Request-Id=jti", "Date=iat", "Cache-Control=name",
            "WWW-Authenticate=sub", "From=email", "User-Agent=name", "Forwarded=sub", "Location=picture",
            "Accept-Language=name", "If-Match=jti", "Sec-WebSocket-Key=sub", "X-Auth-Name=cnf", "X-Auth-Name=nonce",
            "X=cnf.jkt=x", String(repeating: "X", count: 65) + "=sub",
        ] { #expect(throws: SettingFault.self, "\(text)") { try AuthField(text) } }
    }

    @Test("Field names of common gateways are accepted, and the default list stays the same")
    func taken() throws {
        for name in ["Remote-User", "X-Forwarded-User", "X-Auth-Request-Email", "x", "X-WEBAUTH-USER"] {
            #expect(try AuthField("\(name)=sub").name == name)
        }
        #expect(
            AuthField.standard.map(\.description) == [
                "X-Auth-Subject=sub", "X-Auth-Audience=aud", "X-Auth-Expires=exp", "X-Auth-Email=email",
            ]
        )
    }
}
