#include "server/session/disk_remedy.h"

#include <cerrno>

namespace flamewire::server {

std::string_view disk_remedy(int errno_value) {
    switch (errno_value) {
        case ENOSPC:
        case EDQUOT: return "free some space under the data directory";
        case EROFS:
        case EACCES:
        case EPERM: return "make the data directory writable for the server";
        default: return {};
    }
}

Error with_disk_remedy(Error error) {
    if (const auto remedy = disk_remedy(error.errno_value); !remedy.empty()) (error.message += ": ") += remedy;
    return error;
}

}  // namespace flamewire::server
