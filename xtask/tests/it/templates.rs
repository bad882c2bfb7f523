//! The templates in `slurm/`.

use std::path::{Path, PathBuf};

use crate::script::check;

#[test]
fn templates_are_fit_for_their_shell() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../slurm");
    let mut templates: Vec<PathBuf> = folder
        .read_dir()
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "sbatch")
        })
        .collect();
    templates.sort();
    assert_eq!(templates.len(), 2, "{templates:?}");
    for template in templates {
        let text = std::fs::read_to_string(&template).unwrap();
        assert!(
            text.starts_with("#!/bin/bash\n#SBATCH "),
            "{}",
            template.display()
        );
        check("bash", &["-n"], &template);
        check("dash", &["-n"], &template);
        check("shellcheck", &["--shell=bash"], &template);
    }
}
