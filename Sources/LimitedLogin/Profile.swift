/// The person as the token describes them, as Facebook's SDK builds it.
public struct Profile: Equatable, Sendable {
    public var userID: String
}
