// swift-tools-version: 6.2.3
import PackageDescription

let package = Package(
    name: "limited-login-examples",
    platforms: [.macOS(.v26)],
    dependencies: [
        .package(name: "limited-login", path: "../../..", traits: []),
        .package(url: "https://github.com/hummingbird-project/hummingbird", exact: "2.28.1"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
        .package(url: "https://github.com/swift-server/async-http-client", from: "1.37.0"),
    ],
    targets: [
        .executableTarget(
            name: "server",
            dependencies: [
                .product(name: "LimitedLogin", package: "limited-login"),
                .product(name: "LimitedLoginKeys", package: "limited-login"),
                .product(name: "LimitedLoginHTTPS", package: "limited-login"),
                .product(name: "Hummingbird", package: "hummingbird"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
            ]
        ),
        .executableTarget(
            name: "getting-started",
            dependencies: [
                .product(name: "LimitedLogin", package: "limited-login"),
                .product(name: "LimitedLoginKeys", package: "limited-login"),
                .product(name: "LimitedLoginHTTPS", package: "limited-login"),
            ]
        ),
        .executableTarget(
            name: "key-service",
            dependencies: [
                .product(name: "LimitedLoginKeys", package: "limited-login"),
                .product(name: "LimitedLoginHTTPS", package: "limited-login"),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
                .product(name: "Logging", package: "swift-log"),
            ]
        ),
        .target(
            name: "AsyncHTTPClientSource",
            dependencies: [
                .product(name: "AsyncHTTPClient", package: "async-http-client"),
                .product(name: "LimitedLoginKeys", package: "limited-login"),
            ]
        ),
    ]
)
