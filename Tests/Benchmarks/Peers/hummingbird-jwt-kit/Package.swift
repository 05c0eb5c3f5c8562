// swift-tools-version: 6.2
import PackageDescription

/// A server with the framework and the JOSE library that most Swift servers use.
let package = Package(
    name: "hummingbird-jwt-kit",
    dependencies: [
        .package(url: "https://github.com/hummingbird-project/hummingbird", exact: "2.28.1"),
        .package(url: "https://github.com/vapor/jwt-kit", exact: "5.7.1"),
    ],
    targets: [
        .executableTarget(
            name: "hummingbird-jwt-kit",
            dependencies: [
                .product(name: "Hummingbird", package: "hummingbird"),
                .product(name: "JWTKit", package: "jwt-kit"),
            ]
        )
    ]
)
