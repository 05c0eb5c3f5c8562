// swift-tools-version: 6.2
import PackageDescription

/// Judges the tokens of a catalogue with jwt-kit.
let package = Package(
    name: "jwt-kit-judge",
    dependencies: [.package(url: "https://github.com/vapor/jwt-kit", exact: "5.7.1")],
    targets: [
        .executableTarget(name: "jwt-kit-judge", dependencies: [.product(name: "JWTKit", package: "jwt-kit")])
    ]
)
