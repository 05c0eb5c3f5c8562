// The part of Facebook's SDK that the sketch uses, declared so that it compiles without the SDK. Names and shapes are
// those of facebook-login 18. An app leaves this file out.
package com.facebook

class FacebookException : RuntimeException()

interface CallbackManager

interface FacebookCallback<RESULT> {
    fun onSuccess(result: RESULT)
    fun onCancel()
    fun onError(error: FacebookException)
}

class AccessToken(val token: String)

class AuthenticationToken(val token: String)
