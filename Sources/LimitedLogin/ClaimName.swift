/// The claims this library reads; every other claim of a token is passed through untouched.
public enum ClaimName: String, CaseIterable, Sendable {
    /// Who issued the token.
    case issuer = "iss"
    /// For which app.
    case audience = "aud"
    /// For which person: an ID that only this app knows.
    case subject = "sub"
    /// When.
    case issuedAt = "iat"
    /// Until when.
    case expiration = "exp"
    /// From when on.
    case notBefore = "nbf"
    /// The token's own name.
    case tokenID = "jti"
    /// The nonce of the login.
    case nonce
    /// To which app, where it is not `aud` alone.
    case authorizedParty = "azp"
    /// The hash of the access token issued at the same time.
    case accessTokenHash = "at_hash"
    /// The full name.
    case name
    /// The first name.
    case givenName = "given_name"
    /// The middle name.
    case middleName = "middle_name"
    /// The last name.
    case familyName = "family_name"
    /// The e-mail address.
    case email
    /// The URL of the picture.
    case picture
    /// The friends who use the app.
    case userFriends = "user_friends"
    /// The birthday.
    case userBirthday = "user_birthday"
    /// The bracket of the age.
    case userAgeRange = "user_age_range"
    /// The home town.
    case userHometown = "user_hometown"
    /// The city the person lives in.
    case userLocation = "user_location"
    /// The gender.
    case userGender = "user_gender"
    /// The link to the person's page.
    case userLink = "user_link"
}
