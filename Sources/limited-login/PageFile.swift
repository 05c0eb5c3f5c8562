internal import CPage

/// One file of the page, as it was embedded.
struct PageFile {
    let mediaType: String
    let content: [UInt8]

    /// The file of a route; nil where its answer is made anew each time.
    init?(_ route: PageRoute) {
        switch route {
        case .page: (mediaType, content) = ("text/html; charset=utf-8", Self.html)
        case .style: (mediaType, content) = ("text/css; charset=utf-8", Self.style)
        case .script: (mediaType, content) = ("text/javascript; charset=utf-8", Self.script)
        case .icon: (mediaType, content) = ("image/svg+xml", Self.icon)
        case .state, .run: return nil
        }
    }

    // Each is a constant of the program that ends with a zero byte.
    private static let html = unsafe Array(String(cString: page_html()).utf8)
    private static let style = unsafe Array(String(cString: page_style()).utf8)
    private static let script = unsafe Array(String(cString: page_script()).utf8)
    private static let icon = unsafe Array(String(cString: page_icon()).utf8)
}
