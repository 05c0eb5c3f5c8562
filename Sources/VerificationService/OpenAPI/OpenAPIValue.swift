/// A JSON value of the OpenAPI document, written as a Swift literal; members keep their order.
enum OpenAPIValue {
    case object([Member])
    case array([OpenAPIValue])
    case string(String)
    case integer(Int)
    case bool(Bool)

    /// One member of an object.
    struct Member {
        var name: String
        var value: OpenAPIValue
    }

    /// Appends the value as JSON.
    func write(to bytes: inout [UInt8]) {
        switch self {
        case .object(let members):
            bytes.append(UInt8(ascii: "{"))
            for (index, member) in members.enumerated() {
                if index > 0 { bytes.append(UInt8(ascii: ",")) }
                JSONWriter.string(member.name, to: &bytes)
                bytes.append(UInt8(ascii: ":"))
                member.value.write(to: &bytes)
            }
            bytes.append(UInt8(ascii: "}"))
        case .array(let elements):
            bytes.append(UInt8(ascii: "["))
            for (index, element) in elements.enumerated() {
                if index > 0 { bytes.append(UInt8(ascii: ",")) }
                element.write(to: &bytes)
            }
            bytes.append(UInt8(ascii: "]"))
        case .string(let text): JSONWriter.string(text, to: &bytes)
        case .integer(let number): JSONWriter.integer(number, to: &bytes)
        case .bool(let flag): JSONWriter.raw(flag ? "true" : "false", to: &bytes)
        }
    }

    /// The object with the members of another behind its own.
    func adding(_ other: OpenAPIValue) -> OpenAPIValue {
        guard case .object(let members) = self, case .object(let more) = other else { return self }
        return .object(members + more)
    }

    /// A reference to a part of the document that has a name.
    static func reference(_ path: String) -> OpenAPIValue { ["$ref": .string("#/components/\(path)")] }
}

extension OpenAPIValue: ExpressibleByDictionaryLiteral {
    typealias Key = String
    typealias Value = OpenAPIValue

    init(dictionaryLiteral elements: (String, OpenAPIValue)...) {
        self = .object(elements.map { Member.init(name: $0.0, value: $0.1) })
    }
}

extension OpenAPIValue: ExpressibleByArrayLiteral {
    typealias ArrayLiteralElement = OpenAPIValue

    init(arrayLiteral elements: OpenAPIValue...) { self = .array(elements) }
}

extension OpenAPIValue: ExpressibleByStringLiteral {
    init(stringLiteral value: String) { self = .string(value) }
}

extension OpenAPIValue: ExpressibleByIntegerLiteral {
    init(integerLiteral value: Int) { self = .integer(value) }
}

extension OpenAPIValue: ExpressibleByBooleanLiteral {
    init(booleanLiteral value: Bool) { self = .bool(value) }
}
