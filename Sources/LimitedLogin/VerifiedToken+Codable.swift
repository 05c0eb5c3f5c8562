internal import LLJOSE

/// The JSON of the answer of `POST /verify`: the members `authentication_token`, `profile` and `claims`.
extension VerifiedToken: Codable {
    private enum CodingKeys: String, CodingKey {
        case authenticationToken = "authentication_token"
        case profile, claims
    }

    /// Reads the output of ``encode(to:)`` or of the service. **It proves nothing**: decode stored values of your own
    /// server or the answer of your own service, never a request. It does not contain the token, so
    /// ``AuthenticationToken/tokenString`` is empty.
    public init(from decoder: any Decoder) throws {
        let members = try decoder.container(keyedBy: CodingKeys.self)
        let token = try members.decode(AuthenticationToken.self, forKey: .authenticationToken)
        let profile = try members.decode(Profile.self, forKey: .profile)
        guard token.subject == profile.userID else {
            let fault = "the token and the profile are of two people"
            throw DecodingError.dataCorruptedError(forKey: .profile, in: members, debugDescription: fault)
        }
        let claims = try members.decode(JSONValue.self, forKey: .claims).text
        self.init(authenticationToken: token, profile: profile, claimsJSON: claims)
    }

    /// Writes the token's facts without the token itself: an answer or a log must not contain a login credential.
    public func encode(to encoder: any Encoder) throws {
        guard let claims = JSONValue(parsing: claimsJSON) else {
            let context = EncodingError.Context(
                codingPath: encoder.codingPath,
                debugDescription: "claimsJSON is no object"
            )
            throw EncodingError.invalidValue(claimsJSON, context)
        }
        var members = encoder.container(keyedBy: CodingKeys.self)
        let tracking: LoginTracking = profile.isLimited ? .limited : .enabled
        try members.encode(Facts(token: authenticationToken, tracking: tracking), forKey: .authenticationToken)
        try members.encode(profile, forKey: .profile)
        try members.encode(claims, forKey: .claims)
    }

    /// The member `authentication_token`: the token's facts, and the tracking among them.
    private struct Facts: Encodable {
        let token: AuthenticationToken
        let tracking: LoginTracking

        private enum CodingKeys: String, CodingKey {
            case tracking
        }

        func encode(to encoder: any Encoder) throws {
            try token.encode(to: encoder)
            var members = encoder.container(keyedBy: CodingKeys.self)
            try members.encode(tracking.rawValue, forKey: .tracking)
        }
    }
}

/// Any JSON value, for conversion between text and a coder. Numbers are 64-bit integers or doubles.
indirect enum JSONValue: Equatable {
    case null
    case bool(Bool)
    case integer(Int64)
    case number(Double)
    case string(String)
    case array([JSONValue])
    case object([Member])

    struct Member: Equatable {
        let name: String
        let value: JSONValue
    }

    /// The object in this text; nil for any other text, and for an object that exceeds the limits of a payload.
    init?(parsing text: String) {
        guard let object = JSONObject(Array(text.utf8), limits: VerificationLimits.payload) else { return nil }
        self.init(object, object.document.root)
    }

    private init(_ json: borrowing JSONObject, _ node: Int) {
        switch json.document.kind(node) {
        case .object:
            var members: [Member] = []
            for name in json.document.children(of: node) {
                members.append(Member(name: json.string(name), value: JSONValue(json, name + 1)))
            }
            self = .object(members)
        case .array:
            var elements: [JSONValue] = []
            for element in json.document.children(of: node) { elements.append(JSONValue(json, element)) }
            self = .array(elements)
        case .true: self = .bool(true)
        case .false: self = .bool(false)
        case .null: self = .null
        default:
            if json.document.isString(node) {
                self = .string(json.string(node))
            } else if let integer = json.document.integer(node, in: json.bytes.span) {
                self = .integer(integer)
            } else {
                self = json.document.double(node, in: json.bytes.span).map { .number($0) } ?? .null
            }
        }
    }

    var text: String {
        switch self {
        case .null: "null"
        case .bool(let value): "\(value)"
        case .integer(let value): "\(value)"
        case .number(let value): "\(value)"
        case .string(let value): JSONText.quoted(value)
        case .array(let elements): "[\(elements.map(\.text).joined(separator: ","))]"
        case .object(let members):
            "{\(members.map { "\(JSONText.quoted($0.name)):\($0.value.text)" }.joined(separator: ","))}"
        }
    }
}

extension JSONValue: Codable {
    init(from decoder: any Decoder) throws {
        if let members = try? decoder.container(keyedBy: MemberName.self) {
            self = .object(
                try members.allKeys.sorted { $0.stringValue < $1.stringValue }.map { name in
                    Member(name: name.stringValue, value: try members.decode(JSONValue.self, forKey: name))
                }
            )
            return
        }
        if var elements = try? decoder.unkeyedContainer() {
            var values: [JSONValue] = []
            while !elements.isAtEnd { values.append(try elements.decode(JSONValue.self)) }
            self = .array(values)
            return
        }
        let value = try decoder.singleValueContainer()
        if value.decodeNil() {
            self = .null
        } else if let bool = try? value.decode(Bool.self) {
            self = .bool(bool)
        } else if let integer = try? value.decode(Int64.self) {
            self = .integer(integer)
        } else if let number = try? value.decode(Double.self) {
            self = .number(number)
        } else {
            self = .string(try value.decode(String.self))
        }
    }

    func encode(to encoder: any Encoder) throws {
        switch self {
        case .object(let members):
            var container = encoder.container(keyedBy: MemberName.self)
            for member in members { try container.encode(member.value, forKey: MemberName(stringValue: member.name)) }
        case .array(let elements):
            var container = encoder.unkeyedContainer()
            for element in elements { try container.encode(element) }
        default:
            var container = encoder.singleValueContainer()
            switch self {
            case .bool(let value): try container.encode(value)
            case .integer(let value): try container.encode(value)
            case .number(let value): try container.encode(value)
            case .string(let value): try container.encode(value)
            default: try container.encodeNil()
            }
        }
    }
}

/// The name of any member of a JSON object.
struct MemberName: CodingKey, ExpressibleByStringLiteral {
    let stringValue: String
    var intValue: Int? { nil }

    init(stringValue: String) { self.stringValue = stringValue }
    init(stringLiteral text: String) { stringValue = text }
    init(_ name: StaticString) { stringValue = "\(name)" }
    init?(intValue: Int) { nil }
}
