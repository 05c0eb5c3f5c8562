internal import Sockets

extension HTTPURL {
    /// The URL that a `Location` value names, seen from this one (RFC 9110, 10.2.2): an absolute URL, or a path from the
    /// root. Any other relative reference is refused: no key server needs one.
    func redirected(to location: String) throws(HTTPSClientError) -> HTTPURL {
        // RFC 9110, 10.2.2: a fragment may stand there; it never travels.
        let reference = String(location.prefix { $0 != "#" })
        let text: String
        if reference.hasPrefix("//") {
            text = "\(scheme.rawValue):\(reference)"
        } else if reference.hasPrefix("/") {
            text = "\(scheme.rawValue)://\(authority)\(reference)"
        } else {
            text = reference
        }
        let url: HTTPURL
        do {
            url = try HTTPURL(parsing: text)
        } catch {
            throw .redirectRefused(reason: "it leads to no https URL")
        }
        guard url.scheme == scheme else { throw .redirectRefused(reason: "it leads from https to http") }
        guard url.host == host, url.port == port else { throw .redirectRefused(reason: "it leads to another host") }
        return url
    }
}
