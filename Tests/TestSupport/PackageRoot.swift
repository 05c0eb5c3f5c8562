/// Where the package lies, found from this file's own place.
package enum PackageRoot {
    /// The folder that holds `Package.swift`, without a slash at the end.
    package static let path: String = {
        let parts = #filePath.split(separator: "/", omittingEmptySubsequences: false)
        // …/Tests/TestSupport/PackageRoot.swift
        return parts.dropLast(3).joined(separator: "/")
    }()
}
