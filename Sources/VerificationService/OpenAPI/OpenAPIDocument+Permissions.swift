extension OpenAPIDocument {
    static var userPermissions: OpenAPIValue {
        func names(_ description: String) -> OpenAPIValue {
            [
                "type": "array", "items": ["type": "string", "pattern": "^[a-z_]{1,64}$"],
                "description": .string(description),
            ]
        }
        return object(
            ["user_id", "app_id", "granted", "declined", "expired"],
            [
                "user_id": text("The person, within the app."), "app_id": text("The app."),
                "granted": names("What the person has granted."),
                "declined": names("What the person was asked for and declined."),
                "expired": names("What the person granted once, and what ran out for want of use."),
                "missing": names(
                    "Of those in `permissions`: never granted nor declined, or expired; worth asking for. There exactly when "
                        + "`permissions` was given."
                ),
                "declined_requested": names(
                    "Of those in `permissions`: declined, so do not ask again unless the person comes back to it. There "
                        + "exactly when `permissions` was given."
                ),
            ]
        )
    }

    static var uninstallRequest: OpenAPIValue {
        object(
            ["id_token"],
            [
                "id_token": [
                    "type": "string", "minLength": 1, "maxLength": 8192,
                    "description": "An id token of the person that has not expired.",
                ],
                "app_id": [
                    "type": "string", "minLength": 1, "maxLength": 128,
                    "description": "The one configured app the token must be for.",
                ],
            ]
        )
    }
}
