#ifndef LIMITED_LOGIN_CPLATFORM_H
#define LIMITED_LOGIN_CPLATFORM_H

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#endif
