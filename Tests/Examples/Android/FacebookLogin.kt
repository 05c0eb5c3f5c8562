// The same for the package `com.facebook.login`. An app leaves this file out too.
package com.facebook.login

import com.facebook.AccessToken
import com.facebook.AuthenticationToken
import com.facebook.CallbackManager
import com.facebook.FacebookCallback

class LoginConfiguration(val permissions: Collection<String>?, val nonce: String)

class LoginResult(val accessToken: AccessToken, val authenticationToken: AuthenticationToken?)

open class LoginManager {
    open fun registerCallback(callbackManager: CallbackManager?, callback: FacebookCallback<LoginResult>?) {}
}
