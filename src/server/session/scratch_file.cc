#include "server/session/scratch_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

namespace flamewire::server {

Result<UniqueFd> unnamed_file(const std::string& folder) {
    UniqueFd fd(::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
    if (fd) return fd;
    // Some file systems do not support O_TMPFILE.
    std::string path = folder + "/scratch-XXXXXX";
    fd.reset(::mkostemp(path.data(), O_CLOEXEC));
    if (!fd) return fail_errno("cannot write into " + folder, errno);
    (void)::unlink(path.c_str());
    return fd;
}

}  // namespace flamewire::server
