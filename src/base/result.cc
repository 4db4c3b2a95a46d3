#include "base/result.h"

#include <cerrno>
#include <cstring>

namespace flamewire {

std::unexpected<Error> fail(ErrorCode code, std::string message) {
    return std::unexpected(Error{code, 0, std::move(message)});
}

static ErrorCode code_of_errno(int errno_value) {
    switch (errno_value) {
        case ENOENT:
        case ESRCH:
        case ENODEV:
        case ENXIO: return ErrorCode::not_found;
        case EACCES:
        case EPERM: return ErrorCode::permission;
        case EOPNOTSUPP:
        case ENOSYS: return ErrorCode::unsupported;
        case EBUSY:
        case EMFILE:
        case ENFILE:
        case EAGAIN: return ErrorCode::busy;
        case EINVAL: return ErrorCode::invalid;
        case EPIPE:
        case ECONNRESET: return ErrorCode::closed;
        default: return ErrorCode::io;
    }
}

std::unexpected<Error> fail_errno(std::string what, int errno_value) {
    // strerrordesc_np (glibc 2.32) is thread-safe, is never translated and needs no buffer.
    const char* reason = strerrordesc_np(errno_value);
    what += ": ";
    what += reason != nullptr ? reason : "unknown error";
    // Any call that creates a descriptor can hit the limit, so all of them give the same hint.
    if (errno_value == EMFILE) what += ". Try: ulimit -n 65536 before starting";
    return std::unexpected(Error{code_of_errno(errno_value), errno_value, std::move(what)});
}

}  // namespace flamewire
