// The same for the package of the login; an app leaves this file out too.
package com.facebook.login

import com.facebook.AccessToken
import com.facebook.CallbackManager
import com.facebook.FacebookCallback

class LoginResult(val accessToken: AccessToken)

open class LoginManager {
    open fun registerCallback(callbackManager: CallbackManager?, callback: FacebookCallback<LoginResult>?) {}
}
