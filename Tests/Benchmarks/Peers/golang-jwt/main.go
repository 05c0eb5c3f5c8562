// A careful verifier with golang-jwt. It takes POST /verify with the token and the nonce, accepts only RS256, checks
// issuer, audience, expiry and nonce, and answers the claims.
package main

import (
	"crypto/rsa"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"runtime"

	jwt "github.com/golang-jwt/jwt"
)

type question struct {
	Token string `json:"id_token"`
	Nonce string `json:"nonce"`
}

func main() {
	runtime.GOMAXPROCS(1)
	address, keyFile, keyID, app := os.Args[1], os.Args[2], os.Args[3], os.Args[4]
	text, err := os.ReadFile(keyFile)
	if err != nil {
		panic(err)
	}
	key, err := jwt.ParseRSAPublicKeyFromPEM(text)
	if err != nil {
		panic(err)
	}
	parser := jwt.NewParser(jwt.WithValidMethods([]string{"RS256"}))
	find := func(token *jwt.Token) (interface{}, error) {
		if token.Header["kid"] == keyID {
			return key, nil
		}
		return (*rsa.PublicKey)(nil), errors.New("unknown key")
	}
	http.HandleFunc("/verify", func(writer http.ResponseWriter, request *http.Request) {
		var asked question
		if err := json.NewDecoder(request.Body).Decode(&asked); err != nil {
			http.Error(writer, "bad request", 400)
			return
		}
		claims := jwt.MapClaims{}
		token, err := parser.ParseWithClaims(asked.Token, claims, find)
		if err != nil || !token.Valid || !claims.VerifyIssuer("https://www.facebook.com", true) ||
			!claims.VerifyAudience(app, true) || claims["nonce"] != asked.Nonce {
			http.Error(writer, "invalid token", 401)
			return
		}
		body, err := json.Marshal(map[string]interface{}{"claims": claims})
		if err != nil {
			http.Error(writer, "internal error", 500)
			return
		}
		writer.Header().Set("Content-Type", "application/json")
		writer.Write(body)
	})
	panic(http.ListenAndServe(address, nil))
}
