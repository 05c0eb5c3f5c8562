// A login server. The app begins a login here, logs in at Facebook with the nonce from here, and sends the id token.
//
// The signed cookie of github.com/gorilla/sessions holds the session, and each change sets a new cookie. A client may send an
// old cookie again, so limited-login takes each nonce only once. README.md has the command that starts this server.
package main

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"log"
	"net/http"
	"time"

	"github.com/gorilla/sessions"
)

// A session ends so many seconds after its login or its last refresh.
const lifetime = 3_600

var store = sessions.NewCookieStore([]byte(setting("SESSION_SECRET", `^.{32,}$`, "a secret of at least 32 random characters")))

type input struct {
	Login   string `json:"login"`
	IDToken string `json:"id_token"`
}

// answer answers a request by its route, and changes the session.
func answer(route string, session *sessions.Session, sent input) (object, error) {
	user := object{"user": session.Values["user"]}
	until, _ := session.Values["until"].(int64)
	isLoggedIn := until > time.Now().Unix()
	switch {
	case route == "POST /login/begin":
		var issued struct{ Nonce string }
		id := make([]byte, 16)
		if _, err := rand.Read(id); err != nil {
			return nil, err
		}
		if err := ask("/nonces", object{}, &issued); err != nil {
			return nil, err
		}
		session.Values["login"], session.Values["nonce"] = hex.EncodeToString(id), issued.Nonce
		return object{"login": session.Values["login"], "nonce": issued.Nonce}, nil
	case route == "POST /login":
		if sent.Login == "" || sent.Login != session.Values["login"] {
			return nil, failure{Status: 401, Code: "login_not_begun"}
		}
		var verified verification
		// The nonce comes from the session. limited-login compares it with the token's, and takes it once.
		if err := ask("/verify", object{"id_token": sent.IDToken, "nonce": session.Values["nonce"]}, &verified); err != nil {
			return nil, err
		}
		session.Values = map[any]any{"user": verified.Profile.UserID, "until": time.Now().Unix() + lifetime}
		return object{"user": verified.Profile.UserID, "name": verified.Profile.Name}, nil
	case route == "POST /logout":
		session.Values, session.Options.MaxAge = map[any]any{}, -1
		return object{}, nil
	case !isLoggedIn:
		return nil, failure{Status: 401, Code: "not_logged_in"}
	case route == "POST /refresh":
		// The user comes from the session, never from the client.
		session.Values["until"] = time.Now().Unix() + lifetime
		return user, ask("/verify", object{"id_token": sent.IDToken, "subject": session.Values["user"]}, &object{})
	case route == "GET /me":
		return user, nil
	}
	return nil, failure{Status: 404, Code: "not_found"}
}

// serve reads a request and its session, and saves the session if the answer is good.
func serve(w http.ResponseWriter, r *http.Request) {
	var sent input
	// Any body but a JSON object counts as an empty object.
	_ = json.NewDecoder(http.MaxBytesReader(w, r.Body, 40_960)).Decode(&sent)
	// A foreign or expired cookie gives an empty session.
	session, _ := store.Get(r, "__Host-session")
	said, err := answer(r.Method+" "+r.URL.Path, session, sent)
	if err == nil && r.Method == http.MethodPost {
		err = session.Save(r, w)
	}
	w.Header().Set("Content-Type", "application/json")
	if err != nil {
		refusal := failure{Status: 503, Code: "try_again"}
		if !errors.As(err, &refusal) {
			log.Println("limited-login cannot tell:", err)
		}
		w.WriteHeader(refusal.Status)
		said = object{"error": refusal.Code}
	}
	_ = json.NewEncoder(w).Encode(said)
}

func main() {
	store.Options = &sessions.Options{Path: "/", HttpOnly: true, Secure: true, SameSite: http.SameSiteLaxMode}
	store.MaxAge(lifetime)
	port := setting("PORT", `^\d+$`, "a port number, such as 3000")
	log.Fatal(http.ListenAndServe("127.0.0.1:"+port, http.HandlerFunc(serve)))
}
