// swift-tools-version: 6.2.3
import PackageDescription

/// Measures the cost of a login in the libraries, beside OpenSSL alone and jwt-kit, in one process.
/// `LIBRARY_SPEED_ALONE=1` leaves jwt-kit out.
let isAlone = Context.environment["LIBRARY_SPEED_ALONE"] != nil

let package = Package(
    name: "library-speed",
    platforms: [.macOS(.v26)],
    dependencies: [.package(name: "limited-login", path: "../../..", traits: [])]
        + (isAlone ? [] : [.package(url: "https://github.com/vapor/jwt-kit", exact: "5.7.1")]),
    targets: [
        .target(name: "BareVerify", linkerSettings: [.linkedLibrary("crypto")]),
        .executableTarget(
            name: "library-speed",
            dependencies: [
                "BareVerify",
                .product(name: "LimitedLogin", package: "limited-login"),
                .product(name: "LimitedLoginTesting", package: "limited-login"),
            ] + (isAlone ? [] : [.product(name: "JWTKit", package: "jwt-kit")])
        ),
    ]
)
