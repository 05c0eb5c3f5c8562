module login

go 1.19

require github.com/gorilla/sessions v1.2.1

require github.com/gorilla/securecookie v1.1.1 // indirect
