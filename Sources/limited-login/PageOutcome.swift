internal import JOSE
internal import LimitedLogin
internal import VerificationService

/// What the page shows after something was done, as one JSON object.
struct PageOutcome {
    /// One thing that happened on the way.
    struct Step {
        /// What was asked, such as `POST /verify`.
        let what: String
        /// A status, or a word.
        let result: String
        /// One sentence about it.
        let note: String
    }

    /// The credential that was judged.
    let token: String
    let report: CheckReport
    /// The service's answer, where there is one: its status and JSON.
    var answer: (status: Int, json: [UInt8])?
    /// What an accepted credential means, where it means something else than a login.
    var note = ""
    /// The same in a terminal.
    let command: String
    /// What happened on the way.
    var steps: [Step] = []

    /// - Parameter state: the page's state afterwards, as JSON.
    func json(state: [UInt8]) -> [UInt8] {
        var bytes: [UInt8] = []
        JSONWriter.raw("{\"state\":", to: &bytes)
        bytes += state
        JSONWriter.name("report", to: &bytes)
        bytes += report.json
        JSONWriter.name("checks", to: &bytes)
        bytes += PageJSON.checks(report.rows.map { ($0.check, $0.title) })
        if let answer {
            JSONWriter.member("status", "\(answer.status)", to: &bytes)
            // As text, so that the page shows what was sent, not what it read.
            let text = String(decoding: answer.json, as: UTF8.self)
            JSONWriter.member("answer", text.isEmpty ? nil : text, to: &bytes)
        }
        JSONWriter.member("token", token, to: &bytes)
        JSONWriter.member("note", note, to: &bytes)
        JSONWriter.member("command", command, to: &bytes)
        JSONWriter.name("steps", to: &bytes)
        bytes += PageJSON.array(steps) { step in
            PageJSON.object([("what", step.what), ("result", step.result), ("note", step.note)])
        }
        bytes.append(UInt8(ascii: "}"))
        return bytes
    }
}

/// JSON for the page.
enum PageJSON {
    /// An object of texts.
    static func object(_ members: [(name: String, text: String)]) -> [UInt8] {
        object(members.map { ($0.name, string($0.text)) })
    }

    /// An object of members that are JSON already.
    static func object(_ members: [(name: String, json: [UInt8])]) -> [UInt8] {
        var bytes = [UInt8(ascii: "{")]
        for (index, member) in members.enumerated() {
            if index > 0 { bytes.append(UInt8(ascii: ",")) }
            JSONWriter.string(member.name, to: &bytes)
            bytes.append(UInt8(ascii: ":"))
            bytes += member.json
        }
        return bytes + [UInt8(ascii: "}")]
    }

    static func array<Element>(_ elements: [Element], _ json: (Element) -> [UInt8]) -> [UInt8] {
        var bytes: [UInt8] = []
        JSONWriter.array(elements, to: &bytes) { $1 += json($0) }
        return bytes
    }

    static func string(_ text: String) -> [UInt8] {
        var bytes: [UInt8] = []
        JSONWriter.string(text, to: &bytes)
        return bytes
    }

    /// Checks by name and title, in their order; of an id token where no others are given.
    static func checks(
        _ titles: [(check: String, title: String)] = VerificationCheck.allCases.map { ("\($0)", $0.title) }
    ) -> [UInt8] {
        array(titles) { object([("check", $0.check), ("title", $0.title)]) }
    }

    /// The member of this name, where it is text.
    static func text(_ name: StaticString, in object: [UInt8]) -> String? {
        var document = JSONDocument()
        guard (try? document.parse(object.span)) != nil, document.isObject(document.root),
            let value = document.member(name, of: document.root, in: object.span), document.isString(value)
        else { return nil }
        return document.string(value, in: object.span)
    }

    /// The members of an object that are texts, and those that are arrays of texts; nil where it is no object of these.
    static func members(_ body: [UInt8]) -> (texts: [String: String], lists: [String: [String]])? {
        var document = JSONDocument()
        guard (try? document.parse(body.span)) != nil, document.kind(document.root) == .object else { return nil }
        var texts: [String: String] = [:]
        var lists: [String: [String]] = [:]
        for name in document.children(of: document.root) {
            let value = name + 1
            let member = document.string(name, in: body.span)
            if document.kind(value) == .string {
                texts[member] = document.string(value, in: body.span)
            } else if document.kind(value) == .array {
                for element in document.children(of: value) {
                    guard document.kind(element) == .string else { return nil }
                    lists[member, default: []].append(document.string(element, in: body.span))
                }
            } else {
                return nil
            }
        }
        return (texts, lists)
    }
}
