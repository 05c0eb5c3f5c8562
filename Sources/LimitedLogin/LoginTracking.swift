/// The tracking a login was made with, as far as its token shows.
public enum LoginTracking: String, CaseIterable, Sendable {
    /// An access token came with the id token (`at_hash` is there): Facebook Login.
    case enabled
    /// Only the id token was issued: Limited Login.
    case limited
}
