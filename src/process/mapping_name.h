// What the name of a mapping says about what is mapped.
#pragma once

#include <string_view>

namespace flamewire::process {

// The kind of a mapping, from the name that the kernel gives it in maps and in MMAP2 records.
enum class MappingName {
    file,       // an absolute path, including memfds
    vdso,       // [vdso]
    anonymous,  // no name, //anon, [heap], SysV shared memory, /dev/zero, …
};
MappingName classify_mapping(std::string_view path);

}  // namespace flamewire::process
