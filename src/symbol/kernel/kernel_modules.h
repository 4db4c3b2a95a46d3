// Lines and inlined functions of kernel modules. kallsyms names the module and the function of an address, and the
// module's .ko contains that function. This needs no section addresses, which only root may read.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "symbol/dwarf/dwarf_index.h"
#include "symbol/dwarf/split_dwarf.h"
#include "symbol/types/config.h"
#include "symbol/types/string_pool.h"

namespace flamewire::symbol {

class KernelModules {
public:
    // `strings` must outlive the object. Files are searched on the first lookup. `sys_modules` is the directory with
    // the build-ids of the loaded modules, "/sys/module".
    KernelModules(const Config& config, std::string release, std::string sys_modules, StringPool& strings);
    ~KernelModules();

    // Appends the frames at `offset` from the beginning of a module's function (module and function named as in
    // kallsyms), innermost first, each function followed by " [module]". False: there is no such file with debug info,
    // or it has several functions of that name.
    bool find(const std::string& module, std::string_view function, std::uint64_t offset,
              std::vector<IndexedFrame>& frames);

private:
    struct File;
    void list_files();
    std::unique_ptr<File> open(const std::string& module);

    const Config config_;
    const std::string release_, sys_modules_;
    StringPool& strings_;
    bool listed_ = false;
    std::map<std::string, std::vector<std::string>> places_;  // by module
    std::map<std::string, std::unique_ptr<File>> files_;      // by module; empty: no usable file
};

}  // namespace flamewire::symbol
