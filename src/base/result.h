// Error handling in Flamewire: Result<T> is a value or an Error, and TRY returns early with the error. An Error states
// what was tried, on what, and why it failed. The code that shows it to a person adds the remedy.
#pragma once

#include <expected>
#include <string>
#include <utility>

namespace flamewire {

// The kind of failure, for callers that act on it (HTTP status, fallback, retry).
enum class ErrorCode {
    invalid,      // the input is malformed or out of range
    not_found,    // no such file, process, session, …
    permission,   // the kernel or the file system refuses
    unsupported,  // this kernel, CPU or build cannot do it
    busy,         // cannot be done now: wrong state, or a limit is reached
    too_large,    // over a stated bound
    io,           // the system call failed for another reason
    closed,       // the peer or the target is gone
};

struct Error {
    ErrorCode code = ErrorCode::io;
    int errno_value = 0;  // 0 when no system call was involved
    std::string message;  // one sentence without a final full stop
};

template <class T>
using Result = std::expected<T, Error>;

// An error without a system call behind it.
[[nodiscard]] std::unexpected<Error> fail(ErrorCode code, std::string message);

// An error from errno: the message becomes "<what>: <strerror>", the code follows from errno
// (ENOENT/ESRCH not_found, EACCES/EPERM permission, EOPNOTSUPP/ENOSYS unsupported, EBUSY/EMFILE busy, else io).
[[nodiscard]] std::unexpected<Error> fail_errno(std::string what, int errno_value);

// The value of a successful result. TRY needs it because its value may be unused.
template <class T>
T value_of(Result<T>&& result) {
    return *std::move(result);
}

}  // namespace flamewire

// `auto value = TRY(function());` or `TRY(void_function());` returns early with the error.
#define TRY(expression)                                                                             \
    __extension__({                                                                                 \
        auto flamewire_try_result = (expression);                                                   \
        if (!flamewire_try_result) return std::unexpected(std::move(flamewire_try_result).error()); \
        ::flamewire::value_of(std::move(flamewire_try_result));                                     \
    })
