#include "process/mapping_name.h"

#include <array>

namespace flamewire::process {

MappingName classify_mapping(std::string_view path) {
    if (path == "[vdso]") return MappingName::vdso;
    if (!path.starts_with('/')) return MappingName::anonymous;
    constexpr std::array<std::string_view, 5> nameless = {"//anon", "/SYSV", "/dev/zero", "/anon_hugepage", "/[aio]"};
    for (const std::string_view prefix : nameless)
        if (path.starts_with(prefix)) return MappingName::anonymous;
    return MappingName::file;
}

}  // namespace flamewire::process
